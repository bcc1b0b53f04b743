#include "program/part_sums.hpp"

#include <gpunn/ops.h>

#include <string>
#include <utility>

#include "program/gradient_buckets.hpp"
#include "program/programs.hpp"

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::kNoValue;
using graph::Storage;
using graph::ValueId;

namespace {

Attributes sum_of(int64_t parts) {
  return Attributes::of(gpunn_all_reduce_attrs{.struct_size = 0, .parts = static_cast<int32_t>(parts)});
}

}  // namespace

PartGradients::PartGradients(Graph& g, const ParameterLayout& layout, const Division& division, ValueId gradients,
                             RankSumOptions options)
    : g_(g), layout_(layout), division_(division), gradients_(gradients), options_(std::move(options)) {}

ValueId PartGradients::begin_part(int64_t part) {
  const TensorType flat = layout_.trained_type();
  if (keeps_parts()) {
    if (parts_ == kNoValue) {
      const TensorType all{DType::f32, {division_.mine.count(), layout_.trained}};
      parts_ = g_.add_value(variable::kPartialGradients, all, Storage::gradients);
    }
    return g_.add_view("gradients.part" + std::to_string(part), parts_, flat,
                       part * static_cast<int64_t>(flat.bytes()));
  }
  if (part == 0) return gradients_;
  if (parts_ == kNoValue) parts_ = g_.add_value(variable::kPartialGradients, flat, Storage::gradients);
  return parts_;
}

void PartGradients::end_part(int64_t part) {
  if (part == 0 || keeps_parts()) return;
  const gpunn_axpby_attrs add{.struct_size = 0, .alpha = 1, .beta = 1};
  g_.add_into(GPUNN_OP_AXPBY, "gradients", Attributes::of(add), {gradients_, parts_}, {gradients_});
}

void PartGradients::add_sum() {
  if (division_.world == 1) return;
  if (keeps_parts()) {
    g_.add_into(GPUNN_OP_ALL_REDUCE, "gradients", sum_of(division_.parts), {parts_}, {gradients_});
    return;
  }
  const int64_t parts = division_.in_order ? division_.parts : division_.world;
  const bool half = options_.wire == Wire::bf16;
  // In memory of its own, which no activation has to leave before.
  const ValueId wire =
      half ? g_.add_value(variable::kWireGradients, {DType::bf16, {layout_.trained}}, Storage::gradients) : gradients_;
  const auto convert = [&](ValueId from, ValueId to) { g_.add_into(GPUNN_OP_COPY, "gradients", {}, {from}, {to}); };
  for (const distributed::Share bucket : options_.buckets) {
    const distributed::Share own = options_.shard ? shard_of(bucket, options_.ranks) : bucket;
    const auto view = [&](ValueId flat, const Shape& shape, int64_t begin) {
      const TensorType type{g_.value(flat).type.dtype, shape};
      return g_.add_view("gradients.bucket", flat, type, begin * static_cast<int64_t>(size_of(type.dtype)));
    };
    const Shape all{1, bucket.count()}, kept{own.count()};
    if (half) convert(view(gradients_, all, bucket.begin), view(wire, all, bucket.begin));
    g_.add_into(options_.shard ? GPUNN_OP_REDUCE_SCATTER : GPUNN_OP_ALL_REDUCE, "gradients", sum_of(parts),
                {view(wire, all, bucket.begin)}, {view(wire, kept, own.begin)});
    if (half) convert(view(wire, kept, own.begin), view(gradients_, kept, own.begin));
  }
}

PartBuffers::PartBuffers(Graph& g, const ParameterLayout& layout, const Division& division, ValueId buffers)
    : g_(g), layout_(layout), division_(division), buffers_(buffers) {}

std::vector<ValueId> PartBuffers::add_part() {
  if (buffers_ == kNoValue) return {};
  const std::string name = variable::kPartBuffers + std::to_string(parts_.size());
  const ValueId own = g_.add_value(name, layout_.type(), Storage::state);
  g_.add_into(GPUNN_OP_COPY, name, {}, {buffers_}, {own});
  parts_.push_back(own);
  return add_parameter_views(g_, layout_, own);
}

void PartBuffers::add_mean() {
  if (parts_.empty()) return;
  const ValueId sum = add_sum_of_parts(g_, variable::kPartBuffers, parts_, division_);
  // Where parts are added up rank by rank, a sum has all of them too.
  const gpunn_scale_attrs share{.struct_size = 0, .factor = 1.0F / static_cast<float>(division_.parts)};
  g_.add_into(GPUNN_OP_SCALE, variable::kPartBuffers, Attributes::of(share), {sum}, {buffers_});
}

}  // namespace gpunn::training
