#pragma once

#include <gpunn/data.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "program/batch_ring.hpp"
#include "program/sampling.hpp"
#include "tasks/batch.hpp"

namespace gpunn::training {

// A split of the data set as step programs see it. On the device its variables are "<name>.samples" and one for each
// other field, "<name>.<field>". A streamed split has those of the ring: "<name>.ring.samples" and "<name>.ring.rows".
struct SplitType {
  std::string name;
  TensorType samples;  // the first input
  std::optional<BatchRing> ring = {};
  std::vector<DeviceField> fields = {};
  bool brought = false;  // a BatchSource decides which rows make up a batch
  int64_t rows() const { return samples.shape.empty() ? 0 : samples.shape[0]; }
  std::string samples_variable() const { return name + (ring ? ".ring.samples" : ".samples"); }
  std::string variable(const DeviceField& field) const { return name + "." + field.name; }
  std::string ring_variable() const { return name + ".ring.rows"; }
  const DeviceField* find(const std::string& field) const;  // nullptr: it has none of this name
};

using tasks::Batch;

// (x * unit - mean) / stddev as x * scale + shift, by channel; unit takes u8 to [0, 1].
struct Normalisation {
  std::vector<float> scale, shift;
};
// The variables of another image that the model takes: "data.<field>.scale" and "data.<field>.shift", f32[C].
std::string normalisation_variable(const std::string& field, const std::string& what);
// For samples as the data set has them.
Normalisation raw_normalisation(DType dtype, const std::vector<double>& mean, const std::vector<double>& stddev);
// For samples as the device has them: bytes are raw, and fields::Standardiser has normalised all others.
Normalisation device_normalisation(DType dtype, const std::vector<double>& mean, const std::vector<double>& stddev);

// Whether the first input is normalised: integers other than bytes reach the model as they are.
bool are_normalised(DType samples);
// Sets batch.x to the indexed rows of the samples [n, C, ...], and batch.scale and batch.shift to the normalisation
// that augmentations see, of which bytes alone have the same on the device.
void add_samples(graph::Graph& g, graph::ValueId samples, graph::ValueId index, Batch& batch);

inline constexpr auto kWordBytes = static_cast<int64_t>(sizeof(int32_t));
// The slot of this step without the samples, i32[1, words]: BatchRing::rows.
graph::ValueId add_slot_rows(graph::Graph& g, const SplitType& split, graph::ValueId step);
// A field of the rows of that slot, [batch, ...].
graph::ValueId add_slot_field(graph::Graph& g, const SplitType& split, graph::ValueId slot, std::size_t field);
// A field of picked rows as models take it, with normalised pixels of an image; of other fields, as i32 or f32.
graph::ValueId add_field_of_batch(graph::Graph& g, const DeviceField& field, graph::ValueId rows);

// The counters of a step, i64 0-d: of all steps done, and of the sampling, which takes step + Sampling::shift.
struct StepCounters {
  graph::ValueId step = graph::kNoValue, position = graph::kNoValue;
};

// Appends the ops that pick it. A ring is taken to hold the batch of this step in its slot.
Batch add_batch(graph::Graph& g, const SplitType& split, StepCounters counters, const Sampling& sampling);

}  // namespace gpunn::training
