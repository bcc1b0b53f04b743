// PAD, SLICE, CONCAT and TRANSPOSE: nothing is computed, so that each is the other's gradient.
#include <gpunn/ops.h>

#include <algorithm>
#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

constexpr int64_t kLargestSize = int64_t{1} << 40;  // sums of three stay far from overflow

void require_attribute_rank(int32_t rank, const TensorType& x) {
  require(rank >= 0 && rank <= GPUNN_MAX_RANK && static_cast<std::size_t>(rank) == x.shape.size(),
          "the attributes are for " + std::to_string(rank) + " dimensions, x is " + to_string(x));
}

Types infer_pad(const Attributes& attrs, Inputs in) {
  require_dtype(in[0], DType::f32, "x");
  const auto a = attrs.as<gpunn_pad_attrs>();
  require_attribute_rank(a.rank, in[0]);
  TensorType y = in[0];
  for (std::size_t i = 0; i < y.shape.size(); ++i) {
    require(a.before[i] >= 0 && a.before[i] <= kLargestSize && a.after[i] >= 0 && a.after[i] <= kLargestSize,
            "padding of dimension " + std::to_string(i) + " must not be negative, nor beyond any memory, is " +
                std::to_string(a.before[i]) + " and " + std::to_string(a.after[i]));
    y.shape[i] += a.before[i] + a.after[i];
  }
  return {y};
}

Types infer_slice(const Attributes& attrs, Inputs in) {
  require_dtype(in[0], DType::f32, "x");
  const auto a = attrs.as<gpunn_slice_attrs>();
  require_attribute_rank(a.rank, in[0]);
  const Shape& x = in[0].shape;
  for (std::size_t i = 0; i < x.size(); ++i) {
    require(a.start[i] >= 0 && a.size[i] >= 0 && a.start[i] <= x[i] && a.size[i] <= x[i] - a.start[i],
            std::to_string(a.size[i]) + " elements from " + std::to_string(a.start[i]) + " on are not in dimension " +
                std::to_string(i) + " of " + to_string(in[0]));
  }
  return {{DType::f32, Shape(a.size, a.size + a.rank)}};
}

Types infer_concat(const Attributes& attrs, Inputs in) {
  require_dtype(in[0], DType::f32, "input 0");
  const auto axis = attrs.as<gpunn_concat_attrs>().axis;
  require(axis >= 0 && static_cast<std::size_t>(axis) < in[0].shape.size(),
          "there is no dimension " + std::to_string(axis) + " in " + to_string(in[0]));
  TensorType y = in[0];
  int64_t& size = y.shape[static_cast<std::size_t>(axis)];
  for (std::size_t i = 1; i < in.size(); ++i) {
    TensorType like = in[0];
    require(in[i].shape.size() == like.shape.size(), "inputs must differ in dimension " + std::to_string(axis) +
                                                         " alone, are " + to_string(in[0]) + " and " +
                                                         to_string(in[i]));
    const int64_t more = in[i].shape[static_cast<std::size_t>(axis)];
    like.shape[static_cast<std::size_t>(axis)] = more;
    require(in[i] == like, "inputs must differ in dimension " + std::to_string(axis) + " alone, are " +
                               to_string(in[0]) + " and " + to_string(in[i]));
    require(more <= kLargestSize && size <= kLargestSize, "the inputs are larger than any memory");
    size += more;
  }
  return {y};
}

Types infer_transpose(const Attributes& attrs, Inputs in) {
  require_dtype(in[0], DType::f32, "x");
  const auto a = attrs.as<gpunn_transpose_attrs>();
  require_attribute_rank(a.rank, in[0]);
  TensorType y = in[0];
  uint32_t seen = 0;
  for (std::size_t i = 0; i < y.shape.size(); ++i) {
    const int32_t from = a.permutation[i];
    require(from >= 0 && from < a.rank && (seen >> from & 1U) == 0,
            "the permutation must hold each of 0 to " + std::to_string(a.rank - 1) + " once");
    seen |= 1U << from;
    y.shape[i] = in[0].shape[static_cast<std::size_t>(from)];
  }
  return {y};
}

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
  int64_t start = 0;
  for (std::size_t i = 0; i < c.node().inputs.size(); ++i) {
    const Shape x = input_shape(c, i);
    if (c.wants(i)) {
      gpunn_slice_attrs slice{};
      slice.rank = static_cast<int32_t>(x.size());
      slice.start[axis] = start;
      std::copy(x.begin(), x.end(), slice.size);
      c.set(i, c.add(GPUNN_OP_SLICE, Attributes::of(slice), {c.output_gradient()}));
    }
    start += x[axis];
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
  constexpr int kMostParts = 16;
  return {
      {.id = GPUNN_OP_PAD,
       .name = "PAD",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_pad,
       .gradient = pad_gradient,
       .flops = no_flops,
       .describe = describe_pad},
      {.id = GPUNN_OP_SLICE,
       .name = "SLICE",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_slice,
       .gradient = slice_gradient,
       .flops = no_flops,
       .bytes = slice_bytes,
       .describe = describe_slice},
      {.id = GPUNN_OP_CONCAT,
       .name = "CONCAT",
       .min_inputs = 2,
       .max_inputs = kMostParts,
       .infer = infer_concat,
       .gradient = concat_gradient,
       .flops = no_flops,
       .describe = describe_concat},
      {.id = GPUNN_OP_TRANSPOSE,
       .name = "TRANSPOSE",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_transpose,
       .gradient = transpose_gradient,
       .flops = no_flops,
       .describe = describe_transpose},
  };
}

}  // namespace gpunn::graph
