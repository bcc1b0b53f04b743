#pragma once

#include <gpunn/data.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "tasks/batch.hpp"
#include "training/batch_ring.hpp"
#include "training/sampling.hpp"

namespace gpunn::training {

// A split of the data set as step programs see it. On the device its variables are "<name>.samples" and "<name>.labels"
// or "<name>.targets". A streamed split has those of the ring: "<name>.ring.samples" and "<name>.ring.rows".
struct SplitType {
  std::string name;
  TensorType samples;
  std::optional<BatchRing> ring = {};
  int64_t targets = 0;   // f32 numbers that a row is to be learnt from; 0: a label in their place
  bool brought = false;  // a BatchSource decides which rows make up a batch
  int64_t rows() const { return samples.shape.empty() ? 0 : samples.shape[0]; }
  std::string samples_variable() const { return name + (ring ? ".ring.samples" : ".samples"); }
  std::string rows_variable() const { return name + (ring ? ".ring.rows" : targets > 0 ? ".targets" : ".labels"); }
  const char* field() const { return targets > 0 ? kTargetField : kLabelField; }  // of the batch
  int64_t words_of_row() const { return targets > 0 ? targets : 1; }                     // four bytes each
  // Of what a row is to be learnt from: i32[rows], or f32[rows, targets].
  TensorType rows_type(int64_t rows) const {
    return targets > 0 ? TensorType{DType::f32, {rows, targets}} : TensorType{DType::i32, {rows}};
  }
};

using tasks::Batch;

// (x * unit - mean) / stddev as x * scale + shift, by channel; unit takes u8 to [0, 1].
struct Normalisation {
  std::vector<float> scale, shift;
};
// For samples as the data set has them.
Normalisation raw_normalisation(DType dtype, const std::vector<double>& mean, const std::vector<double>& stddev);
// For samples as the device has them: bytes are raw, and fields::Standardiser has normalised all others.
Normalisation device_normalisation(DType dtype, const std::vector<double>& mean, const std::vector<double>& stddev);

// The normalisation that augmentations see in place of batch.scale and batch.shift, which bytes alone share with it.
void use_raw_normalisation(graph::Graph& g, DType dtype, Batch& batch);

inline constexpr auto kWordBytes = static_cast<int64_t>(sizeof(int32_t));
// What the slot of this step holds beside the samples, i32[1, words]: BatchRing::rows.
graph::ValueId add_slot_rows(graph::Graph& g, const SplitType& split, graph::ValueId step);

// The counters of a step, i64 0-d: of all steps done, and of the sampling, which takes step + Sampling::shift.
struct StepCounters {
  graph::ValueId step = graph::kNoValue, position = graph::kNoValue;
};

// Appends the ops that pick it. A ring is taken to hold the batch of this step in its slot.
Batch add_batch(graph::Graph& g, const SplitType& split, StepCounters counters, const Sampling& sampling);

}  // namespace gpunn::training
