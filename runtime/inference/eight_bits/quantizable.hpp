// What of a forward program can be stored in eight bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::inference {

constexpr int32_t kFilterZero = 128;  // the zero point of weights in eight bits

// Who makes and who reads the values of a graph.
class ProgramReaders {
 public:
  explicit ProgramReaders(const graph::Graph& g);

  // The only node that reads the value, if it is of this op.
  std::optional<std::size_t> only(graph::ValueId id, int32_t op) const;
  // The node that makes the value, if it is of this op.
  std::optional<std::size_t> maker(graph::ValueId id, int32_t op) const;

 private:
  const graph::Graph& g_;
  std::map<graph::ValueId, std::vector<std::size_t>> readers_;  // by root
  std::map<graph::ValueId, std::size_t> maker_;
};

// Weights that a program rounds to integers of eight bits times a step for each output: the layer key `int8_weight`.
struct Int8Weight {
  graph::ValueId weight = graph::kNoValue;     // the numbers
  graph::ValueId steps = graph::kNoValue;      // the step of each output, in a shape that broadcasts to the weight
  graph::ValueId quotients = graph::kNoValue;  // the numbers in steps
  graph::ValueId integers = graph::kNoValue;   // the numbers in steps, rounded
};
std::optional<Int8Weight> int8_weight(const graph::Graph& g, const ProgramReaders& readers, graph::ValueId weight);
// Those of all convolutions and products, by the value that these read.
std::map<graph::ValueId, Int8Weight> int8_weights(const graph::Graph& g, const ProgramReaders& readers);

// A convolution with what is computed between its sums and the tensor that it gives.
struct Convolved {
  std::size_t convolution = 0;
  std::optional<std::size_t> bias, add, relu;  // relu: RELU, or a CLAMP from 0 on
  graph::ValueId residual = graph::kNoValue;
  graph::ValueId result = graph::kNoValue;

  std::vector<std::size_t> nodes() const;
};

// A product of rows of x with constant weights, and its bias.
struct DenseLayer {
  std::size_t product = 0;
  std::optional<std::size_t> bias;
  graph::ValueId x = graph::kNoValue;  // the tensor that the rows are of, which the product may read in another shape
};

// Each convolution that can be stored in eight bits. A sum belongs to the first of the convolutions that it adds.
std::vector<Convolved> convolutions_of(const graph::Graph& g);
std::vector<DenseLayer> dense_layers_of(const graph::Graph& g);
// The op for stored numbers of one scale, of an op that only moves numbers or chooses among them; 0: it is no such op.
int32_t moving_op(const graph::Node& node);
// Whether the op is a mean of whole images.
bool is_global_mean(const graph::Graph& g, const graph::Node& node);

}  // namespace gpunn::inference
