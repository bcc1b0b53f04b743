// PAD, SLICE, CONCAT and TRANSPOSE: nothing is computed, so that each is the other's gradient.
#include <gpunn/ops.h>

#include <algorithm>
#include <sstream>

#include "graph/expressions.hpp"
#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

const Shape& input_shape(const GradientContext& c, std::size_t i) { return c.graph().value(c.input(i)).type.shape; }

void pad_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_pad_attrs>();
  const Shape& x = input_shape(c, 0);
  gpunn_slice_attrs slice{};
  slice.rank = a.rank;
  std::copy(a.before, a.before + a.rank, slice.start);
  std::copy(x.begin(), x.end(), slice.size);
  c.set(0, c.add(GPUNN_OP_SLICE, Attributes::of(slice), {c.output_gradient()}));
}

void slice_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_slice_attrs>();
  const Shape& x = input_shape(c, 0);
  gpunn_pad_attrs pad{};
  pad.rank = a.rank;
  for (std::size_t i = 0; i < x.size(); ++i) {
    pad.before[i] = a.start[i];
    pad.after[i] = x[i] - a.start[i] - a.size[i];
  }
  c.set(0, c.add(GPUNN_OP_PAD, Attributes::of(pad), {c.output_gradient()}));
}

void concat_gradient(GradientContext& c) {
  const auto axis = static_cast<std::size_t>(c.node().attrs.as<gpunn_concat_attrs>().axis);
  Expressions e(c.graph(), c.name());
  int64_t start = 0;
  for (std::size_t i = 0; i < c.node().inputs.size(); ++i) {
    const int64_t size = input_shape(c, i)[axis];
    if (c.wants(i)) c.set(i, e.slice(c.output_gradient(), axis, start, size));
    start += size;
  }
}

void transpose_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_transpose_attrs>();
  gpunn_transpose_attrs inverse{};
  inverse.rank = a.rank;
  for (int32_t i = 0; i < a.rank; ++i) inverse.permutation[a.permutation[i]] = i;
  c.set(0, c.add(GPUNN_OP_TRANSPOSE, Attributes::of(inverse), {c.output_gradient()}));
}

// Only the box is read.
double slice_bytes(const OpSignature& s) { return 2.0 * static_cast<double>(s.outputs[0].bytes()); }

template <class T>
std::string list_text(const T* values, int32_t count) {
  std::ostringstream text;
  for (int32_t i = 0; i < count; ++i) text << (i == 0 ? "" : ", ") << values[i];
  return "[" + text.str() + "]";
}

// A rank that is none shows as no numbers; infer says what is wrong with it.
int32_t shown(int32_t rank) { return std::clamp<int32_t>(rank, 0, GPUNN_MAX_RANK); }

std::string describe_pad(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_pad_attrs>();
  return "before " + list_text(a.before, shown(a.rank)) + ", after " + list_text(a.after, shown(a.rank));
}

std::string describe_slice(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_slice_attrs>();
  return "start " + list_text(a.start, shown(a.rank)) + ", size " + list_text(a.size, shown(a.rank));
}

std::string describe_concat(const Attributes& attrs) {
  return "axis " + std::to_string(attrs.as<gpunn_concat_attrs>().axis);
}

std::string describe_transpose(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_transpose_attrs>();
  return "permutation " + list_text(a.permutation, shown(a.rank));
}

}  // namespace

std::vector<OpInfo> shape_ops() {
  return {
      {.id = GPUNN_OP_PAD, .gradient = pad_gradient, .flops = no_flops, .describe = describe_pad},
      {.id = GPUNN_OP_SLICE,
       .gradient = slice_gradient,
       .flops = no_flops,
       .bytes = slice_bytes,
       .describe = describe_slice},
      {.id = GPUNN_OP_CONCAT, .gradient = concat_gradient, .flops = no_flops, .describe = describe_concat},
      {.id = GPUNN_OP_TRANSPOSE, .gradient = transpose_gradient, .flops = no_flops, .describe = describe_transpose},
  };
}

}  // namespace gpunn::graph
