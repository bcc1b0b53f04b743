#include "training/batch_ops.hpp"

#include <gpunn/ops.h>

#include "training/programs.hpp"

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

Batch add_normalised(Graph& g, const SplitType& split, const TensorType& type, ValueId index) {
  const TensorType channels{DType::f32, {type.shape[1]}};
  const ValueId samples = g.add_value(split.samples_variable(), type, Storage::data);
  Batch batch{};
  batch.scale = g.add_value(variable::kScale, channels, Storage::data);
  batch.shift = g.add_value(variable::kShift, channels, Storage::data);
  batch.x = g.add1(GPUNN_OP_GATHER_NORMALIZE, "batch.samples", {}, {samples, index, batch.scale, batch.shift});
  use_raw_normalisation(g, type.dtype, batch);
  return batch;
}

Batch add_resident_batch(Graph& g, const SplitType& split, ValueId position, const Sampling& sampling) {
  const ValueId wanted = g.add_value(split.rows_variable(), split.rows_type(split.rows()), Storage::data);
  const auto picked = g.add(GPUNN_OP_SAMPLE_INDICES, "batch", Attributes::of(sampling.attributes()), {position});
  Batch batch = add_normalised(g, split, split.samples, picked[0]);
  batch.fields[split.field()] =
      g.add1(GPUNN_OP_GATHER_ROWS, split.targets > 0 ? "batch.targets" : "batch.labels", {}, {wanted, picked[0]});
  batch.count = picked[1];
  return batch;
}

// Which slot it is, the step says; which rows, the slot.
Batch add_streamed_batch(Graph& g, const SplitType& split, ValueId step) {
  const BatchRing& ring = *split.ring;
  const ValueId rows = add_slot_rows(g, split, step);
  const TensorType words{DType::i32, {ring.batch}};
  const ValueId index = g.add_view("batch.index", rows, words, ring.index_at * kWordBytes);
  Batch batch = add_normalised(g, split, ring.samples, index);
  batch.fields[split.field()] =
      g.add_view(split.targets > 0 ? "batch.targets" : "batch.labels", rows, split.rows_type(ring.batch));
  batch.count = g.add_view("batch.count", rows, {DType::i32, {}}, ring.count_at * kWordBytes);
  return batch;
}

}  // namespace

ValueId add_slot_rows(Graph& g, const SplitType& split, ValueId step) {
  const BatchRing& ring = *split.ring;
  const Sampling slots{.rows = ring.slots(), .batch = 1};
  const ValueId slot = g.add(GPUNN_OP_SAMPLE_INDICES, "batch", Attributes::of(slots.attributes()), {step})[0];
  const ValueId all = g.add_value(split.rows_variable(), ring.rows, Storage::data);
  return g.add1(GPUNN_OP_GATHER_ROWS, "batch.rows", {}, {all, slot});
}

void use_raw_normalisation(Graph& g, DType dtype, Batch& batch) {
  if (dtype == DType::u8) return;
  const TensorType channels = g.value(batch.scale).type;
  batch.scale = g.add_value(variable::kRawScale, channels, Storage::data);
  batch.shift = g.add_value(variable::kRawShift, channels, Storage::data);
}

Normalisation device_normalisation(DType dtype, const std::vector<double>& mean, const std::vector<double>& stddev) {
  if (dtype == DType::u8) return raw_normalisation(dtype, mean, stddev);
  // The sum of -0 and 0 would be 0: a sample keeps its sign.
  return {std::vector<float>(mean.size(), 1), std::vector<float>(mean.size(), -0.0F)};
}

Normalisation raw_normalisation(DType dtype, const std::vector<double>& mean, const std::vector<double>& stddev) {
  const double unit = dtype == DType::u8 ? 1.0 / 255 : 1.0;
  Normalisation result;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    result.scale.push_back(static_cast<float>(unit / stddev[c]));
    result.shift.push_back(static_cast<float>(-mean[c] / stddev[c]));
  }
  return result;
}

Batch add_batch(Graph& g, const SplitType& split, StepCounters counters, const Sampling& sampling) {
  return split.ring ? add_streamed_batch(g, split, counters.step)
                    : add_resident_batch(g, split, counters.position, sampling);
}

}  // namespace gpunn::training
