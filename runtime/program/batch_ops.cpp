#include "program/batch_ops.hpp"

#include <gpunn/ops.h>

#include <algorithm>

#include "fields/standardise.hpp"
#include "program/programs.hpp"

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

ValueId add_converted(Graph& g, const std::string& name, ValueId rows, DType dtype) {
  const ValueId result = g.add_value("batch." + name, {dtype, g.value(rows).type.shape}, Storage::arena);
  g.add_into(GPUNN_OP_COPY, "batch." + name, {}, {rows}, {result});
  return result;
}

Batch add_normalised(Graph& g, const SplitType& split, const TensorType& type, ValueId index) {
  const ValueId samples = g.add_value(split.samples_variable(), type, Storage::data);
  Batch batch{};
  add_samples(g, samples, index, batch);
  return batch;
}

Batch add_resident_batch(Graph& g, const SplitType& split, ValueId position, const Sampling& sampling) {
  std::vector<ValueId> fields;
  for (const DeviceField& field : split.fields) {
    fields.push_back(g.add_value(split.variable(field), field.rows(split.rows()), Storage::data));
  }
  const auto picked = g.add(GPUNN_OP_SAMPLE_INDICES, "batch", Attributes::of(sampling.attributes()), {position});
  Batch batch = add_normalised(g, split, split.samples, picked[0]);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const DeviceField& field = split.fields[i];
    const ValueId rows = g.add1(GPUNN_OP_GATHER_ROWS, "batch." + field.name, {}, {fields[i], picked[0]});
    batch.fields[field.name] = add_field_of_batch(g, field, rows);
  }
  batch.count = picked[1];
  return batch;
}

// The step says which slot it is; the slot says which rows.
Batch add_streamed_batch(Graph& g, const SplitType& split, ValueId step) {
  const BatchRing& ring = *split.ring;
  const ValueId slot = add_slot_rows(g, split, step);
  const TensorType words{DType::i32, {ring.batch}};
  const ValueId index = g.add_view("batch.index", slot, words, ring.index_at * kWordBytes);
  Batch batch = add_normalised(g, split, ring.samples, index);
  for (std::size_t i = 0; i < split.fields.size(); ++i) {
    const DeviceField& field = split.fields[i];
    batch.fields[field.name] = add_field_of_batch(g, field, add_slot_field(g, split, slot, i));
  }
  batch.count = g.add_view("batch.count", slot, {DType::i32, {}}, ring.count_at * kWordBytes);
  return batch;
}

}  // namespace

ValueId add_slot_rows(Graph& g, const SplitType& split, ValueId step) {
  const BatchRing& ring = *split.ring;
  const Sampling slots{.rows = ring.slots(), .batch = 1};
  const ValueId slot = g.add(GPUNN_OP_SAMPLE_INDICES, "batch", Attributes::of(slots.attributes()), {step})[0];
  const ValueId all = g.add_value(split.ring_variable(), ring.rows, Storage::data);
  return g.add1(GPUNN_OP_GATHER_ROWS, "batch.rows", {}, {all, slot});
}

ValueId add_slot_field(Graph& g, const SplitType& split, ValueId slot, std::size_t field) {
  const DeviceField& wanted = split.fields[field];
  return g.add_view("batch." + wanted.name, slot, wanted.rows(split.ring->batch),
                    split.ring->fields_at[field] * kWordBytes);
}

ValueId add_field_of_batch(Graph& g, const DeviceField& field, ValueId rows) {
  const TensorType& type = g.value(rows).type;
  if (field.normalised) {
    const Shape channels{field.row.shape.at(0), 1, 1};
    const auto numbers = [&](const char* what) {
      const ValueId all =
          g.add_value(normalisation_variable(field.name, what), {DType::f32, {channels[0]}}, Storage::data);
      return g.add_view("batch." + field.name, all, {DType::f32, channels});
    };
    const ValueId pixels = add_converted(g, field.name, rows, DType::f32);
    const ValueId scaled = g.add1(GPUNN_OP_MUL, "batch." + field.name, {}, {pixels, numbers("scale")});
    return g.add1(GPUNN_OP_ADD, "batch." + field.name, {}, {scaled, numbers("shift")});
  }
  if (field.is_input || type.dtype == DType::f32 || type.dtype == DType::i32) return rows;
  return add_converted(g, field.name, rows, DType::i32);
}

std::string normalisation_variable(const std::string& field, const std::string& what) {
  return "data." + field + "." + what;
}

const DeviceField* SplitType::find(const std::string& field) const {
  const auto found = std::ranges::find(fields, field, &DeviceField::name);
  return found == fields.end() ? nullptr : &*found;
}

bool are_normalised(DType samples) { return samples == DType::u8 || samples == DType::f32; }

void add_samples(Graph& g, ValueId samples, ValueId index, Batch& batch) {
  const TensorType type = g.value(samples).type;
  if (!are_normalised(type.dtype)) {
    batch.x = g.add1(GPUNN_OP_GATHER_ROWS, "batch.samples", {}, {samples, index});
    return;
  }
  const TensorType channels{DType::f32, {type.shape[1]}};
  batch.scale = g.add_value(variable::kScale, channels, Storage::data);
  batch.shift = g.add_value(variable::kShift, channels, Storage::data);
  batch.x = g.add1(GPUNN_OP_GATHER_NORMALIZE, "batch.samples", {}, {samples, index, batch.scale, batch.shift});
  if (type.dtype == DType::u8) return;
  batch.scale = g.add_value(variable::kRawScale, channels, Storage::data);
  batch.shift = g.add_value(variable::kRawShift, channels, Storage::data);
}

Normalisation device_normalisation(DType dtype, const std::vector<double>& mean, const std::vector<double>& stddev) {
  if (dtype == DType::u8) return raw_normalisation(dtype, mean, stddev);
  // The sum of -0 and 0 would be 0: a sample keeps its sign.
  return {std::vector<float>(mean.size(), 1), std::vector<float>(mean.size(), -0.0F)};
}

Normalisation raw_normalisation(DType dtype, const std::vector<double>& mean, const std::vector<double>& stddev) {
  const double unit = fields::unit_of(dtype);
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
