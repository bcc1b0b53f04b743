#pragma once

#include <gpunn/precision.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "nn/model.hpp"
#include "program/update_rules.hpp"

namespace gpunn::training {

// Neighbouring elements of the flat arrays that are updated alike.
struct UpdateRange {
  int group = -1;  // of optimizer.groups; -1: of none
  int64_t begin = 0, end = 0;
  int64_t decayed = 0;      // the first so many of them decay
  bool matrices = false;    // of Muon's, each for itself
  int64_t state_begin = 0;  // in the arrays of the optimizer's states; times their rows, where they have several
};

// Where each parameter lies in the flat arrays of parameters, gradients and optimizer states: range by range, in each
// the decayed ones first, each part in the order of the layers, every tensor aligned as the device asks. The gaps stay
// zero. Frozen parameters come last, and only the array of parameters has them. A
// model's buffers are laid out alike in an array of their own.
struct ParameterLayout {
  std::vector<nn::Parameter> parameters;  // in the order of the layers
  std::vector<UpdateRule> rules;          // by parameter
  std::vector<int64_t> offset;            // elements, by parameter
  std::vector<UpdateRange> ranges;        // from 0 to `trained` without a gap
  int64_t trained = 0;                    // elements in front of the frozen ones
  int64_t kept = 0;                       // of which there are states of the optimizer: all, or this rank's part
  int64_t multiple = 1;                   // of which `trained` is one
  int64_t total = 0;

  TensorType type() const { return {DType::f32, {total}}; }            // of the parameters
  TensorType trained_type() const { return {DType::f32, {trained}}; }  // of gradients
  TensorType state_type(int64_t rows = 1) const { return {DType::f32, {rows * kept}}; }
  int64_t count() const;          // of numbers, without the gaps
  int64_t trained_count() const;  // of those that are not frozen
  // Where each parameter of a range begins, rising, counted from the range's first element, and the range's end: a
  // parameter with the gap behind it is what lies between two.
  std::vector<int64_t> bounds(const UpdateRange& range) const;
};

// What parameters are aligned to, in bytes, on a device that asks for `alignment`: in half precision twice as much, so
// that the flat array of converted parameters is aligned too.
uint64_t parameter_alignment(Precision precision, uint64_t alignment);

// `alignment` in bytes, a power of two. What is trained can be shared out to so many ranks, each share aligned.
ParameterLayout lay_out(std::vector<nn::Parameter> parameters, std::vector<UpdateRule> rules, uint64_t alignment,
                        int64_t ranks = 1);
// Without groups and without anything frozen.
ParameterLayout lay_out(std::vector<nn::Parameter> parameters, uint64_t alignment);

// The parameters as views of a flat value, in the order of the layers.
std::vector<graph::ValueId> add_parameter_views(graph::Graph& graph, const ParameterLayout& layout,
                                                graph::ValueId flat);

}  // namespace gpunn::training
