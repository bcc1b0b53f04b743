#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "graph/graph.hpp"
#include "training/batch_ring.hpp"
#include "training/sampling.hpp"

namespace gpunn::training {

// A split of the data set as programs see it. On the device its variables are "<name>.samples" and "<name>.labels", or,
// where it is streamed, those of the ring: "<name>.ring.samples" and "<name>.ring.rows".
struct SplitType {
  std::string name;
  TensorType samples;
  std::optional<BatchRing> ring = {};
  int64_t rows() const { return samples.shape[0]; }
  std::string samples_variable() const { return name + (ring ? ".ring.samples" : ".samples"); }
  std::string rows_variable() const { return name + (ring ? ".ring.rows" : ".labels"); }
};

// The batch of a step: normalised samples f32[N, ...], labels i32[N] and how many of the N rows count, i32 0-d; and
// what it was normalised with, x = raw * scale[C] + shift[C].
struct Batch {
  graph::ValueId x = graph::kNoValue, label = graph::kNoValue, count = graph::kNoValue;
  graph::ValueId scale = graph::kNoValue, shift = graph::kNoValue;
  graph::ValueId target = graph::kNoValue;  // f32[N, classes] to be learnt in place of the label's; kNoValue: none
};

// Appends the ops that pick it. A ring is taken to hold the batch of this step in its slot.
Batch add_batch(graph::Graph& g, const SplitType& split, graph::ValueId step, const Sampling& sampling);

}  // namespace gpunn::training
