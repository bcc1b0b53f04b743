#include "program/division.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <string>
#include <utility>

#include "graph/expressions.hpp"
#include "program/programs.hpp"

namespace gpunn::training {

using distributed::Share;
using graph::Attributes;
using graph::Expressions;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

// Rows [first, first + rows) of a value, where a tensor may begin.
ValueId add_copy_of_rows(Graph& g, const std::string& name, ValueId of, int64_t first, int64_t rows) {
  TensorType type = g.value(of).type;
  const int64_t row_bytes = static_cast<int64_t>(type.bytes()) / type.shape.at(0);
  type.shape[0] = rows;
  return g.add1(GPUNN_OP_COPY, name, {}, {g.add_view(name, of, type, first * row_bytes)});
}

ValueId add_i32(Graph& g, const std::string& name, int64_t number) {
  gpunn_fill_attrs fill{};
  fill.dtype = GPUNN_I32;
  fill.value = static_cast<double>(number);
  return g.add1(GPUNN_OP_FILL, name, Attributes::of(fill), {});
}

ValueId add_clamped(Expressions& e, ValueId x, double low, double high) {
  return e.op(GPUNN_OP_CLAMP, {x},
              Attributes::of(gpunn_clamp_attrs{
                  .struct_size = 0, .low = static_cast<float>(low), .high = static_cast<float>(high)}));
}

ValueId add_as_i32(Graph& g, const std::string& name, ValueId number) {
  const ValueId result = g.add_value(name, {DType::i32, {}}, Storage::arena);
  g.add_into(GPUNN_OP_COPY, name, {}, {number}, {result});
  return result;
}

}  // namespace

bool shards_optimizer(const Experiment& experiment, Ranks ranks) {
  return experiment.shard == Shard::optimizer && ranks.world > 1;
}

Division division_of(const Experiment& experiment, Ranks ranks, const Sampling& sampling) {
  Division division;
  division.world = ranks.world;
  division.rows = sampling.width();
  division.in_order = experiment.micro_batches > 0;
  division.divided = ranks.world > 1 || division.in_order;
  division.parts = experiment.accumulate * (division.in_order ? experiment.micro_batches : ranks.world);
  division.mine = distributed::share_of(division.parts, ranks.rank, ranks.world);
  return division;
}

void require_divisible(const Experiment& experiment, Ranks ranks) {
  const Division division =
      division_of(experiment, ranks, {.batch = experiment.data.batch_size * experiment.accumulate});
  const auto fail = [&](const std::string& what) {
    throw Error(experiment.file.string() + ": " + what, ExitCode::usage);
  };
  if (division.parts < ranks.world) {
    fail("training.micro_batches " + std::to_string(experiment.micro_batches) + " are fewer than the " +
         std::to_string(ranks.world) + " ranks; each needs one");
  }
  if (division.parts > division.rows) {
    fail("data.batch_size " + std::to_string(experiment.data.batch_size) +
         " is the batch of all ranks, and less than " +
         (division.in_order ? "training.micro_batches " + std::to_string(experiment.micro_batches)
                            : "the " + std::to_string(ranks.world) + " ranks") +
         "; choose a larger batch, or fewer of these");
  }
}

PickedRows add_picked_rows(Graph& g, const SplitType& split, StepCounters counters, const Sampling& sampling,
                           const Division& division) {
  PickedRows picked;
  if (!split.ring) {
    const auto indices =
        g.add(GPUNN_OP_SAMPLE_INDICES, "batch", Attributes::of(sampling.attributes()), {counters.position});
    picked.samples = g.add_value(split.samples_variable(), split.samples, Storage::data);
    picked.index = indices[0];
    for (const DeviceField& field : split.fields) {
      picked.fields.push_back(g.add_value(split.variable(field), field.rows(split.rows()), Storage::data));
    }
    picked.count = picked.all = indices[1];
    return picked;
  }
  const BatchRing& ring = *split.ring;
  const ValueId rows = add_slot_rows(g, split, counters.step);
  picked.samples = g.add_value(split.samples_variable(), ring.samples, Storage::data);
  picked.index = g.add_view("batch.index", rows, {DType::i32, {ring.batch}}, ring.index_at * kWordBytes);
  for (std::size_t i = 0; i < split.fields.size(); ++i) picked.fields.push_back(add_slot_field(g, split, rows, i));
  picked.fields_are_picked = true;
  picked.count = g.add_view("batch.count", rows, {DType::i32, {}}, ring.count_at * kWordBytes);
  picked.first = division.my_rows().begin;
  picked.all = g.add_view("batch.all", rows, {DType::i32, {}}, ring.all_at * kWordBytes);
  return picked;
}

PartBatch add_part_batch(Graph& g, const SplitType& split, const PickedRows& picked, const Division& division,
                         int64_t part, bool varies) {
  const Share rows = division.rows_of(part);
  const int64_t width = division.part_rows();
  const int64_t begin = rows.begin - picked.first;
  PartBatch result;
  Batch& batch = result.batch;
  const ValueId index = add_copy_of_rows(g, "batch.index", picked.index, begin, width);
  add_samples(g, picked.samples, index, batch);
  for (std::size_t i = 0; i < split.fields.size(); ++i) {
    const DeviceField& field = split.fields[i];
    const std::string name = "batch." + field.name;
    const ValueId of_part = picked.fields_are_picked
                                ? add_copy_of_rows(g, name, picked.fields[i], begin, width)
                                : g.add1(GPUNN_OP_GATHER_ROWS, name, {}, {picked.fields[i], index});
    batch.fields[field.name] = add_field_of_batch(g, field, of_part);
  }
  Expressions e(g, "batch.count");
  if (!varies) {
    batch.count = add_i32(g, "batch.count", rows.count());
    if (!division.even()) result.count = batch.count;
    result.weight = e.constant(static_cast<double>(rows.count()) / static_cast<double>(division.rows));
    return result;
  }
  const auto size = static_cast<double>(rows.count());
  const ValueId left = e.sub(e.to_f32(picked.count), e.constant(static_cast<double>(begin)));
  const ValueId counted = add_clamped(e, left, 0, size);
  batch.count = add_as_i32(g, "batch.count", counted);
  result.count = batch.count;  // 0: the part has no weight in the gradient, and leaves the running statistics alone
  result.weight = e.div(counted, e.to_f32(picked.all));
  return result;
}

ValueId add_sum_of_parts(Graph& g, const std::string& name, const std::vector<ValueId>& values,
                         const Division& division) {
  ValueId sum = values.front();
  Expressions e(g, name);
  if (division.world == 1 || !division.in_order) {
    for (std::size_t i = 1; i < values.size(); ++i) sum = e.add(sum, values[i]);
  }
  if (division.world == 1) return sum;
  const int64_t size = g.value(sum).type.elements();
  if (division.in_order && values.size() > 1) {
    std::vector<ValueId> parts;
    for (const ValueId value : values) parts.push_back(e.view(value, {1, size}));
    sum = g.add1(GPUNN_OP_CONCAT, name, Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = 0}),
                 std::move(parts));
  } else {
    sum = e.view(sum, {1, size});
  }
  const int64_t parts = division.in_order ? division.parts : division.world;
  const ValueId total =
      g.add1(GPUNN_OP_ALL_REDUCE, name,
             Attributes::of(gpunn_all_reduce_attrs{.struct_size = 0, .parts = static_cast<int32_t>(parts)}), {sum});
  return e.view(total, g.value(values.front()).type.shape);
}

}  // namespace gpunn::training
