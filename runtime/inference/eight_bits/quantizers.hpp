#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "graph/graph.hpp"

namespace gpunn::inference {

// How a tensor is stored in eight bits: x = (q - zero_point) * scale, q in [0, 255].
struct Quantizer {
  float scale = 1;
  int32_t zero_point = 0;
};

// A tensor that a program in eight bits stores.
struct QuantizedTensor {
  graph::ValueId value = graph::kNoValue;
  std::string name;       // of the layer that makes it
  bool input = false;     // it is the model's input
  std::size_t range = 0;  // the index of the tensor whose quantizer it has, which may be itself
};

// What convolutions and dense layers read, and what convolutions give behind their bias, residual sum and ReLU or
// ReLU6: in the order of the program, which is the same for any number of rows. `g` is a forward program with folded
// batch norms. A max-pool and a concatenation have one quantizer for what they read and give.
std::vector<QuantizedTensor> tensors_to_quantize(const graph::Graph& g);

// Puts a FAKE_QUANTIZE behind each of these tensors; what reads the tensor reads its result.
void insert_quantizers(graph::Graph& g, std::span<const QuantizedTensor> tensors,
                       std::span<const Quantizer> quantizers);

// What becomes of weights that are not integers times steps already.
enum class FloatWeights {
  kept,     // their ops stay in f32
  rounded,  // QUANTIZE_FILTER stores them in eight bits, as `gpunn quantize` was asked to
};

// An op that runs in eight bits.
struct EightBitOp {
  std::string name;
  int32_t op = 0;
};

// Runs convolutions between two FAKE_QUANTIZE in eight bits, where the backend serves that: the bias, a residual sum
// and ReLU between them are within. So is a ReLU6 whose limit is beyond what is stored. Dense layers behind a
// FAKE_QUANTIZE read eight bits and give f32. Max-pools and concatenations run on stored numbers where what they read
// is stored and all have one quantizer.
std::vector<EightBitOp> use_eight_bits(graph::Graph& g, const execution::Backend& backend, FloatWeights float_weights);

}  // namespace gpunn::inference
