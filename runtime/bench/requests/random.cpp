#include <algorithm>

#include "bench/requests/request.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;
using graph::OpSignature;

OpRequest numbers(Written& r, const graph::OpInfo& info) {
  const bool permutation = info.id == GPUNN_OP_RANDOM_PERMUTATION;
  if (r.sizes.size() > GPUNN_MAX_RANK || (permutation && r.sizes.size() != 1)) {
    bad(r, permutation ? "how many numbers change places" : "at most 8 dimensions");
  }
  gpunn_random_attrs attrs{};
  attrs.rank = static_cast<int32_t>(r.sizes.size());
  std::ranges::copy(r.sizes, attrs.dim);
  attrs.seed = 1;
  attrs.high = 1;
  return OpSignature{.op = info.id, .attrs = Attributes::of(attrs), .inputs = {step_type()}, .outputs = {}};
}

OpRequest dropout(Written& r, const graph::OpInfo& info) {
  const gpunn_dropout_attrs attrs{.struct_size = 0, .p = 0.5F, .seed = 1, .stream = 1};
  return OpSignature{
      .op = info.id, .attrs = Attributes::of(attrs), .inputs = {f32(r.sizes), step_type()}, .outputs = {}};
}

Attributes augmentation(int32_t op) {
  switch (op) {
    case GPUNN_OP_RANDOM_SHIFT: {
      gpunn_random_shift_attrs attrs{};
      attrs.reach[0] = attrs.reach[1] = 4;
      attrs.flip = 0.5F;
      return Attributes::of(attrs);
    }
    case GPUNN_OP_RANDOM_AFFINE: {
      gpunn_random_affine_attrs attrs{};
      attrs.rotate = 15;
      attrs.scale_low = 0.9F;
      attrs.scale_high = 1.1F;
      return Attributes::of(attrs);
    }
    case GPUNN_OP_RANDOM_COLOR: {
      gpunn_random_color_attrs attrs{};
      attrs.brightness = attrs.contrast = attrs.saturation = 0.4F;
      attrs.white = 255;
      return Attributes::of(attrs);
    }
    default: {
      gpunn_random_erase_attrs attrs{};
      attrs.size[0] = attrs.size[1] = 8;
      attrs.p = 1;
      return Attributes::of(attrs);
    }
  }
}

OpRequest augmented(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W");
  const TensorType channels = f32({r.sizes[1]});
  OpSignature s{
      .op = info.id, .attrs = augmentation(info.id), .inputs = {f32(r.sizes), step_type(), channels}, .outputs = {}};
  if (info.id != GPUNN_OP_RANDOM_COLOR) return s;
  s.inputs.push_back(channels);
  return {s, {{2, constant(1.0 / 64)}, {3, constant(-2)}}};  // of colours from 0 to 255
}

OpRequest mixed(Written& r, const graph::OpInfo& info) {
  if (r.sizes.empty()) bad(r, "N and further dimensions");
  const OpSignature s{.op = info.id, .attrs = {}, .inputs = {f32(r.sizes), f32({}), count_type()}, .outputs = {}};
  return {s, {{1, constant(0.3)}, {2, constant(static_cast<double>(r.sizes[0]))}}};
}

}  // namespace

void add_random(Builders& builders) {
  for (const int32_t op : {GPUNN_OP_RANDOM_UNIFORM, GPUNN_OP_RANDOM_NORMAL, GPUNN_OP_RANDOM_PERMUTATION}) {
    builders[op] = numbers;
  }
  builders[GPUNN_OP_DROPOUT] = dropout;
  for (const int32_t op :
       {GPUNN_OP_RANDOM_SHIFT, GPUNN_OP_RANDOM_AFFINE, GPUNN_OP_RANDOM_COLOR, GPUNN_OP_RANDOM_ERASE}) {
    builders[op] = augmented;
  }
  builders[GPUNN_OP_MIX_ROWS] = mixed;
}

}  // namespace gpunn::bench
