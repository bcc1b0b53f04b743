// What the outputs of an op are, for given inputs and attributes; and what is wrong with those, for the host that
// builds a program and for the plugin that is asked to run an op. Most ops need no more than their signature: here is
// what has to be computed.
#pragma once

#include <gpunn/kernel.hpp>
#include <gpunn/op_ranges.hpp>
#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpunn::ops {

// An op's attributes, whichever struct they are; all are 0 where there is none.
class AnyAttributes {
 public:
  explicit AnyAttributes(const void* attributes) : attributes_(attributes) {}
  template <class T>
  T as() const {
    return plugin::read_struct<T>(attributes_);
  }

 private:
  const void* attributes_;
};

using Tensors = std::span<const Tensor>;
using Shape = std::vector<int64_t>;

namespace detail {

// No size of a tensor that is made is larger, so that sums of three stay far from overflow.
inline constexpr int64_t kLargestSize = int64_t{1} << 40;

inline Tensor f32(Shape shape) { return {GPUNN_F32, std::move(shape)}; }

// Of which each has x.shape[0] parts.
inline int64_t ranks_of(const AnyAttributes& attributes, const Shape& x) {
  const int64_t parts = attributes.as<gpunn_all_reduce_attrs>().parts;
  require(parts % x[0] == 0,
          std::to_string(parts) + " parts of all ranks, of which this one has " + std::to_string(x[0]));
  return parts / x[0];
}

// The shape that attributes carry.
template <class Attributes>
Shape stated_shape(const Attributes& a) {
  return {a.dim, a.dim + a.rank};
}

// --- Arithmetic ---

// The shape that two broadcast to.
inline Shape broadcast_shape(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() < b.size() ? b : a;
  const Shape& shorter = a.size() < b.size() ? a : b;
  const std::size_t lead = longer.size() - shorter.size();
  Shape y = longer;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    if (y[lead + i] == 1) y[lead + i] = shorter[i];
    require(shorter[i] == 1 || shorter[i] == y[lead + i],
            shape_text(a) + " and " + shape_text(b) + " can't be broadcast to one shape");
  }
  return y;
}

inline Shape broadcast_shape(Tensors in) {
  Shape y = in[0].shape;
  for (const Tensor& one : in.subspan(1)) y = broadcast_shape(y, one.shape);
  return y;
}

inline Shape expanded_shape(const AnyAttributes& attributes, const Shape& x) {
  Shape y = stated_shape(attributes.as<gpunn_expand_attrs>());
  require(broadcast_shape(x, y) == y, shape_text(x) + " can't be broadcast to " + shape_text(y));
  return y;
}

// --- Linear ---

template <class Attributes>
Shape product_shape(const AnyAttributes& attributes, const Tensor& a, const Tensor& b) {
  const auto given = attributes.as<Attributes>();
  const bool transpose_a = given.transpose_a != 0, transpose_b = given.transpose_b != 0;
  require(a.shape.size() == 2, "a must have 2 dimensions, is " + text_of(a));
  require(b.shape.size() == 2, "b must have 2 dimensions, is " + text_of(b));
  const int64_t inner_a = a.shape[transpose_a ? 0 : 1], inner_b = b.shape[transpose_b ? 1 : 0];
  require(inner_a == inner_b, "the inner dimensions of a " + shape_text(a.shape) + (transpose_a ? " transposed" : "") +
                                  " and b " + shape_text(b.shape) + (transpose_b ? " transposed" : "") +
                                  " differ: " + std::to_string(inner_a) + " and " + std::to_string(inner_b));
  return {a.shape[transpose_a ? 1 : 0], b.shape[transpose_b ? 0 : 1]};
}

inline Shape batched_product_shape(const AnyAttributes& attributes, Tensors in) {
  const Tensor &a = in[0], &b = in[1];
  require(a.shape.size() == 3 && b.shape.size() == 3 && a.shape[0] == b.shape[0],
          "a and b must have 3 dimensions, the first of one size, are " + text_of(a) + " and " + text_of(b));
  const auto one = [](const Tensor& x) { return f32({x.shape[1], x.shape[2]}); };
  const Shape y = product_shape<gpunn_matmul_attrs>(attributes, one(a), one(b));
  return {a.shape[0], y[0], y[1]};
}

inline Shape product_with_bias_shape(const AnyAttributes& attributes, Tensors in) {
  Shape y = product_shape<gpunn_matmul_bias_activation_attrs>(attributes, in[0], in[1]);
  require(in[2].shape == Shape{y[1]}, "bias " + text_of(in[2]) + " must have the channels of x " + shape_text(y));
  return y;
}

// --- Convolution ---

inline int64_t convolution_size(const gpunn_conv2d_attrs& a, std::size_t axis, int64_t input, int64_t filter) {
  require(filter <= kLargestSize / a.dilation[axis], "a filter of " + std::to_string(filter) + " is too large");
  const int64_t reach = a.dilation[axis] * (filter - 1) + 1;
  const int64_t padded = input + 2 * int64_t{a.pad[axis]};
  require(filter > 0 && padded >= reach, "a filter of reach " + std::to_string(reach) +
                                             " is larger than the padded input of " + std::to_string(padded) +
                                             (axis == 0 ? " rows" : " columns"));
  return (padded - reach) / a.stride[axis] + 1;
}

inline Shape convolution_shape(const gpunn_conv2d_attrs& a, const Shape& x, const Shape& w) {
  require(x[0] > 0 && x[1] > 0 && w[0] > 0,
          "images " + shape_text(x) + " and filters " + shape_text(w) + " must not be empty");
  require(w[1] <= kLargestSize / a.groups, "the filter " + shape_text(w) + " has too many channels");
  require(w[1] * a.groups == x[1], "the filter " + shape_text(w) + " in " + std::to_string(a.groups) +
                                       " groups reads " + std::to_string(w[1] * a.groups) + " channels, the input " +
                                       shape_text(x) + " has " + std::to_string(x[1]));
  require(w[0] % a.groups == 0,
          std::to_string(w[0]) + " filters can't be split in " + std::to_string(a.groups) + " groups");
  return {x[0], w[0], convolution_size(a, 0, x[2], w[2]), convolution_size(a, 1, x[3], w[3])};
}

inline Shape residual_shape(const AnyAttributes& attributes, Tensors in) {
  Shape y = convolution_shape(attributes.as<gpunn_conv2d_attrs>(), in[0].shape, in[1].shape);
  require(in[3].shape == y, "the residual must be " + shape_text(y) + ", is " + shape_text(in[3].shape));
  return y;
}

inline Tensor quantized_convolution(const AnyAttributes& attributes, Tensors in) {
  const auto a = attributes.as<gpunn_quantized_conv2d_attrs>();
  gpunn_conv2d_attrs plain{};
  std::copy_n(a.stride, 2, plain.stride);
  std::copy_n(a.pad, 2, plain.pad);
  std::copy_n(a.dilation, 2, plain.dilation);
  plain.groups = a.groups;
  const Shape y = convolution_shape(plain, in[0].shape, in[1].shape);
  if (in.size() > 4) {
    require(in[4].shape == y, "the residual must be " + shape_text(y) + ", is " + shape_text(in[4].shape));
  }
  return {GPUNN_U8, y};
}

inline void require_output_gradient(const Shape& dy, const Shape& expected) {
  require(dy == expected, "dy must be " + shape_text(expected) + ", is " + shape_text(dy));
}

inline Shape convolution_data_shape(const AnyAttributes& attributes, Tensors in) {
  const auto a = attributes.as<gpunn_conv2d_attrs>();
  const Shape& w = in[1].shape;
  require(w[1] <= kLargestSize / a.groups,
          std::to_string(a.groups) + " groups of " + std::to_string(w[1]) + " channels are too many");
  Shape dx{in[0].shape[0], w[1] * a.groups, a.input_size[0], a.input_size[1]};
  require_output_gradient(in[0].shape, convolution_shape(a, dx, w));
  return dx;
}

inline Shape convolution_filter_shape(const AnyAttributes& attributes, Tensors in) {
  const auto a = attributes.as<gpunn_conv2d_attrs>();
  const Shape& x = in[1].shape;
  require(x[1] % a.groups == 0,
          std::to_string(x[1]) + " channels can't be split in " + std::to_string(a.groups) + " groups");
  Shape dw{in[0].shape[1], x[1] / a.groups, a.filter_size[0], a.filter_size[1]};
  require_output_gradient(in[0].shape, convolution_shape(a, x, dw));
  return dw;
}

// --- Pooling and up-sampling ---

inline Shape pooling_shape(const gpunn_pool2d_attrs& a, const Shape& x) {
  Shape y{x[0], x[1], 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    require(2 * int64_t{a.pad[i]} <= a.window[i],
            "pad " + pair_text(a.pad) + " must be at most half the window " + pair_text(a.window));
    const int64_t padded = x[2 + i] + 2 * int64_t{a.pad[i]};
    require(x[2 + i] > 0 && padded >= a.window[i],
            "window " + pair_text(a.window) + " is larger than the padded input " + shape_text(x));
    y[2 + i] = (padded - a.window[i]) / a.stride[i] + 1;
  }
  return y;
}

inline Shape average_gradient_shape(const AnyAttributes& attributes, const Shape& dy) {
  const auto a = attributes.as<gpunn_pool2d_attrs>();
  Shape x{dy[0], dy[1], a.input_size[0], a.input_size[1]};
  require_output_gradient(dy, pooling_shape(a, x));
  return x;
}

inline Shape grid_shape(const AnyAttributes& attributes) {
  const auto a = attributes.as<gpunn_grid_points_attrs>();
  return {int64_t{a.rows} * a.columns, 3};
}

inline gpunn_upsample2d_attrs upsampling_of(const AnyAttributes& attributes) {
  const auto a = attributes.as<gpunn_upsample2d_attrs>();
  require(a.mode == GPUNN_UPSAMPLE_NEAREST || a.mode == GPUNN_UPSAMPLE_BILINEAR,
          "there is no mode " + std::to_string(a.mode));
  return a;
}

inline Shape upsampled_shape(const AnyAttributes& attributes, Shape y) {
  const auto a = upsampling_of(attributes);
  for (std::size_t i = 0; i < 2; ++i) {
    require(y[2 + i] <= kLargestSize / a.factor[i],
            "factors " + pair_text(a.factor) + " make " + shape_text(y) + " larger than any memory");
    y[2 + i] *= a.factor[i];
  }
  return y;
}

inline Shape upsampled_gradient_shape(const AnyAttributes& attributes, Shape x) {
  const auto a = upsampling_of(attributes);
  for (std::size_t i = 0; i < 2; ++i) {
    require(x[2 + i] % a.factor[i] == 0,
            "rows and columns of dy " + shape_text(x) + " must be multiples of the factors " + pair_text(a.factor));
    x[2 + i] /= a.factor[i];
  }
  return x;
}

inline gpunn_reflect_pad2d_attrs reflection_of(const AnyAttributes& attributes, const Shape& image) {
  const auto a = attributes.as<gpunn_reflect_pad2d_attrs>();
  for (std::size_t i = 0; i < 2; ++i) {
    require(a.before[i] < image[2 + i] && a.after[i] < image[2 + i],
            "padding before " + pair_text(a.before) + " and after " + pair_text(a.after) +
                " must be less than the rows and columns of x " + shape_text(image));
  }
  return a;
}

inline Shape reflected_shape(const AnyAttributes& attributes, Shape y) {
  const auto a = reflection_of(attributes, y);
  for (std::size_t i = 0; i < 2; ++i) y[2 + i] += int64_t{a.before[i]} + a.after[i];
  return y;
}

inline Shape reflected_gradient_shape(const AnyAttributes& attributes, Shape x) {
  const auto a = attributes.as<gpunn_reflect_pad2d_attrs>();
  for (std::size_t i = 0; i < 2; ++i) x[2 + i] -= int64_t{a.before[i]} + a.after[i];
  reflection_of(attributes, x);
  return x;
}

// --- Reductions and shapes ---

inline Shape reduced_shape(const AnyAttributes& attributes, const Shape& x) {
  const auto a = attributes.as<gpunn_reduce_attrs>();
  require(a.kind >= GPUNN_REDUCE_SUM && a.kind <= GPUNN_REDUCE_MAX, "unknown reduction " + std::to_string(a.kind));
  require((a.axes >> x.size()) == 0,
          "the axes' mask " + std::to_string(a.axes) + " names a dimension that x " + shape_text(x) + " does not have");
  Shape y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool reduced = ((a.axes >> i) & 1U) != 0;
    require(!reduced || x[i] > 0 || a.kind == GPUNN_REDUCE_SUM, "x " + shape_text(x) + " has nothing to reduce");
    if (!reduced) y.push_back(x[i]);
    if (reduced && a.keep_dims != 0) y.push_back(1);
  }
  return y;
}

inline void require_attribute_rank(int32_t rank, const Shape& x) {
  require(static_cast<std::size_t>(rank) == x.size(),
          "the attributes are for " + std::to_string(rank) + " dimensions, x is " + shape_text(x));
}

inline Shape padded_shape(const AnyAttributes& attributes, Shape y) {
  const auto a = attributes.as<gpunn_pad_attrs>();
  require_attribute_rank(a.rank, y);
  for (std::size_t i = 0; i < y.size(); ++i) {
    require(a.before[i] <= kLargestSize && a.after[i] <= kLargestSize,
            "the padding of dimension " + std::to_string(i) + " is larger than any memory");
    y[i] += a.before[i] + a.after[i];
  }
  return y;
}

inline Shape slice_shape(const AnyAttributes& attributes, const Shape& x) {
  const auto a = attributes.as<gpunn_slice_attrs>();
  require_attribute_rank(a.rank, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    require(a.start[i] <= x[i] && a.size[i] <= x[i] - a.start[i],
            std::to_string(a.size[i]) + " elements from " + std::to_string(a.start[i]) + " on are not in dimension " +
                std::to_string(i) + " of " + shape_text(x));
  }
  return {a.size, a.size + a.rank};
}

inline Shape concatenated_shape(const AnyAttributes& attributes, Tensors in) {
  const auto axis = attributes.as<gpunn_concat_attrs>().axis;
  Shape y = in[0].shape;
  require(static_cast<std::size_t>(axis) < y.size(),
          "there is no dimension " + std::to_string(axis) + " in " + text_of(in[0]));
  const auto at = static_cast<std::size_t>(axis);
  for (const Tensor& one : in.subspan(1)) {
    Shape like = in[0].shape;
    if (one.shape.size() == like.size()) like[at] = one.shape[at];
    require(one.shape == like, "inputs must differ in dimension " + std::to_string(axis) + " alone, are " +
                                   text_of(in[0]) + " and " + text_of(one));
    require(one.shape[at] <= kLargestSize && y[at] <= kLargestSize, "the inputs are larger than any memory");
    y[at] += one.shape[at];
  }
  return y;
}

inline Shape transposed_shape(const AnyAttributes& attributes, const Shape& x) {
  const auto a = attributes.as<gpunn_transpose_attrs>();
  require_attribute_rank(a.rank, x);
  Shape y = x;
  uint32_t seen = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const int32_t from = a.permutation[i];
    require(from < a.rank && (seen >> from & 1U) == 0,
            "the permutation must hold each of 0 to " + std::to_string(a.rank - 1) + " once");
    seen |= 1U << from;
    y[i] = x[static_cast<std::size_t>(from)];
  }
  return y;
}

// --- What the attributes name ---

inline Tensor filled(const AnyAttributes& attributes) {
  const auto a = attributes.as<gpunn_fill_attrs>();
  require(find_dtype(a.dtype) != nullptr, "unknown dtype " + std::to_string(a.dtype));
  return {a.dtype, stated_shape(a)};
}

inline Shape permutation_shape(const AnyAttributes& attributes) {
  Shape shape = stated_shape(attributes.as<gpunn_random_attrs>());
  require(shape.size() == 1 && shape[0] <= std::numeric_limits<int32_t>::max(),
          "a permutation has one dimension of at most 2^31 - 1 entries, not " + shape_text(shape));
  return shape;
}

inline int64_t sampled_rows(const AnyAttributes& attributes) {
  const auto a = attributes.as<gpunn_sample_attrs>();
  require(a.drop_last == 0 || a.batch <= a.rows,
          "a batch of " + std::to_string(a.batch) + " is larger than the " + std::to_string(a.rows) + " rows of data");
  return a.batch;
}

// --- What attributes may be, beyond their ranges ---

inline void require_in_order(const char* low_name, float low, const char* high_name, float high) {
  require(low <= high,
          std::string(low_name) + " " + number_text(low) + " must not be above " + high_name + " " + number_text(high));
}

template <class Attributes>
void require_decayed(const Attributes& a, const Tensor& w) {
  require(a.decayed <= w.shape[0], "decayed " + std::to_string(a.decayed) + " is above the " +
                                       std::to_string(w.shape[0]) + " elements of " + text_of(w));
}

template <class Attributes>
void require_velocity(const Attributes& a, bool given) {
  require((a.momentum != 0) == given, "a velocity goes with a momentum, and only with one");
}

inline void require_attributes(int32_t op, const AnyAttributes& attributes, Tensors in) {
  switch (op) {
    case GPUNN_OP_CUMSUM: {
      const auto axis = static_cast<std::size_t>(attributes.as<gpunn_cumsum_attrs>().axis);
      require(axis < in[0].shape.size(), "there is no dimension " + std::to_string(axis) + " in " + text_of(in[0]));
      return;
    }
    case GPUNN_OP_TRIL:
      return require(in[0].shape.size() >= 2, "x must have two dimensions or more, is " + text_of(in[0]));
    case GPUNN_OP_CLAMP: {
      const auto a = attributes.as<gpunn_clamp_attrs>();  // neither may be NaN
      return require_in_order("low", a.low, "high", a.high);
    }
    case GPUNN_OP_MAX_POOL2D_BACKWARD: {
      const Shape y = pooling_shape(attributes.as<gpunn_pool2d_attrs>(), in[1].shape);
      return require(in[2].shape == y, "y must be " + shape_text(y) + ", is " + shape_text(in[2].shape));
    }
    case GPUNN_OP_SGD_UPDATE:
      require_decayed(attributes.as<gpunn_sgd_attrs>(), in[0]);
      return require_velocity(attributes.as<gpunn_sgd_attrs>(), in.size() == 4);
    case GPUNN_OP_ADAM_UPDATE:
      return require_decayed(attributes.as<gpunn_adam_attrs>(), in[0]);
    case GPUNN_OP_RMSPROP_UPDATE:
      require_decayed(attributes.as<gpunn_rmsprop_attrs>(), in[0]);
      return require_velocity(attributes.as<gpunn_rmsprop_attrs>(), in.size() == 5);
    case GPUNN_OP_ADAGRAD_UPDATE:
      return require_decayed(attributes.as<gpunn_adagrad_attrs>(), in[0]);
    case GPUNN_OP_LION_UPDATE:
      return require_decayed(attributes.as<gpunn_lion_attrs>(), in[0]);
    case GPUNN_OP_LARS_UPDATE:
      return require_decayed(attributes.as<gpunn_lars_attrs>(), in[0]);
    case GPUNN_OP_LBFGS_UPDATE:
      return require_decayed(attributes.as<gpunn_lbfgs_attrs>(), in[0]);
    case GPUNN_OP_L1_GRADIENT:
      return require_decayed(attributes.as<gpunn_l1_attrs>(), in[0]);
    case GPUNN_OP_RANDOM_AFFINE:
    case GPUNN_OP_RANDOM_AFFINE_LABELS: {
      const auto a = attributes.as<gpunn_random_affine_attrs>();
      return require_in_order("scale_low", a.scale_low, "scale_high", a.scale_high);
    }
    case GPUNN_OP_RANDOM_ZOOM:
    case GPUNN_OP_RANDOM_ZOOM_LABELS: {
      const auto a = attributes.as<gpunn_random_zoom_attrs>();
      return require_in_order("low", a.low, "high", a.high);
    }
    case GPUNN_OP_ASSIGN_ANCHORS: {
      const auto a = attributes.as<gpunn_assign_anchors_attrs>();
      return require_in_order("negative", a.negative, "positive", a.positive);
    }
    case GPUNN_OP_METRICS_ACCUMULATE:
      return require(in.size() != 4, "x and label go together");
    default:
      return;
  }
}

// The first output where its shape, or its dtype, has to be computed.
inline Tensor computed_output(int32_t op, const AnyAttributes& attributes, Tensors in) {
  switch (op) {
    case GPUNN_OP_ADD:
    case GPUNN_OP_SUB:
    case GPUNN_OP_MUL:
    case GPUNN_OP_DIV:
    case GPUNN_OP_MAXIMUM:
    case GPUNN_OP_MINIMUM:
    case GPUNN_OP_POW:
    case GPUNN_OP_EQUAL:
    case GPUNN_OP_LESS:
    case GPUNN_OP_LESS_EQUAL:
    case GPUNN_OP_SELECT:
      return f32(broadcast_shape(in));
    case GPUNN_OP_EXPAND:
      return f32(expanded_shape(attributes, in[0].shape));
    case GPUNN_OP_FILL:
      return filled(attributes);
    case GPUNN_OP_MATMUL:
      return f32(product_shape<gpunn_matmul_attrs>(attributes, in[0], in[1]));
    case GPUNN_OP_BATCH_MATMUL:
      return f32(batched_product_shape(attributes, in));
    case GPUNN_OP_MATMUL_BIAS_ACTIVATION:
      return f32(product_with_bias_shape(attributes, in));
    case GPUNN_OP_CONV2D:
    case GPUNN_OP_CONV2D_BIAS_ACTIVATION:
      return f32(convolution_shape(attributes.as<gpunn_conv2d_attrs>(), in[0].shape, in[1].shape));
    case GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION:
      return f32(residual_shape(attributes, in));
    case GPUNN_OP_QUANTIZED_CONV2D:
      return quantized_convolution(attributes, in);
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
      return f32(convolution_data_shape(attributes, in));
    case GPUNN_OP_CONV2D_BACKWARD_FILTER:
      return f32(convolution_filter_shape(attributes, in));
    case GPUNN_OP_MAX_POOL2D:
    case GPUNN_OP_AVG_POOL2D:
      return f32(pooling_shape(attributes.as<gpunn_pool2d_attrs>(), in[0].shape));
    case GPUNN_OP_QUANTIZED_MAX_POOL2D:
      return {GPUNN_U8, pooling_shape(attributes.as<gpunn_pool2d_attrs>(), in[0].shape)};
    case GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D:
      return {GPUNN_U8, {in[0].shape[0], in[0].shape[1], 1, 1}};
    case GPUNN_OP_AVG_POOL2D_BACKWARD:
      return f32(average_gradient_shape(attributes, in[0].shape));
    case GPUNN_OP_UPSAMPLE2D:
      return f32(upsampled_shape(attributes, in[0].shape));
    case GPUNN_OP_UPSAMPLE2D_BACKWARD:
      return f32(upsampled_gradient_shape(attributes, in[0].shape));
    case GPUNN_OP_REFLECT_PAD2D:
      return f32(reflected_shape(attributes, in[0].shape));
    case GPUNN_OP_REFLECT_PAD2D_BACKWARD:
      return f32(reflected_gradient_shape(attributes, in[0].shape));
    case GPUNN_OP_NLL_LOSS_BACKWARD: {
      const int32_t classes = attributes.as<gpunn_classes_attrs>().classes;
      return f32({in[0].shape[0], classes});
    }
    case GPUNN_OP_REDUCE:
      return f32(reduced_shape(attributes, in[0].shape));
    case GPUNN_OP_MEAN_ROWS_BACKWARD: {
      const int64_t rows = attributes.as<gpunn_rows_attrs>().rows;
      return f32({rows});
    }
    case GPUNN_OP_PAD:
      return f32(padded_shape(attributes, in[0].shape));
    case GPUNN_OP_SLICE:
      return f32(slice_shape(attributes, in[0].shape));
    case GPUNN_OP_REDUCE_SCATTER: {
      const int64_t ranks = ranks_of(attributes, in[0].shape);
      require(in[0].shape[1] % ranks == 0, std::to_string(in[0].shape[1]) + " elements can't be shared out evenly to " +
                                               std::to_string(ranks) + " ranks");
      return f32({in[0].shape[1] / ranks});
    }
    case GPUNN_OP_ALL_GATHER:
      return f32({in[0].shape[0] * ranks_of(attributes, in[0].shape), in[0].shape[1]});
    case GPUNN_OP_CONCAT:
      return f32(concatenated_shape(attributes, in));
    case GPUNN_OP_QUANTIZED_CONCAT:
      return {GPUNN_U8, concatenated_shape(attributes, in)};
    case GPUNN_OP_TRANSPOSE:
      return f32(transposed_shape(attributes, in[0].shape));
    case GPUNN_OP_RANDOM_UNIFORM:
    case GPUNN_OP_RANDOM_NORMAL:
      return f32(stated_shape(attributes.as<gpunn_random_attrs>()));
    case GPUNN_OP_RANDOM_PERMUTATION:
      return {GPUNN_I32, permutation_shape(attributes)};
    case GPUNN_OP_SAMPLE_INDICES:
      return {GPUNN_I32, {sampled_rows(attributes)}};
    case GPUNN_OP_SCATTER_ADD: {
      const int64_t rows = attributes.as<gpunn_rows_attrs>().rows;
      require(rows <= kLargestSize, std::to_string(rows) + " rows are larger than any memory");
      Shape y = in[0].shape;
      y[0] = rows;
      return f32(y);
    }
    case GPUNN_OP_GATHER_ROWS: {
      Tensor y = in[0];
      if (y.dtype != GPUNN_F32) y.dtype = GPUNN_I32;
      y.shape[0] = in[1].shape[0];
      return y;
    }
    case GPUNN_OP_GRID_POINTS:
      return f32(grid_shape(attributes));
    case GPUNN_OP_NON_MAXIMUM_SUPPRESSION:
      return f32({in[0].shape[0], attributes.as<gpunn_suppression_attrs>().most, 6});
    default:
      throw std::logic_error("op " + std::to_string(op) + " has no rule for its output");
  }
}

}  // namespace detail

inline void require_input_count(const Signature& signature, std::size_t inputs) {
  if (inputs >= signature.least_inputs && inputs <= signature.most_inputs) return;
  std::string expected = std::to_string(signature.least_inputs);
  if (signature.most_inputs != signature.least_inputs) expected += " to " + std::to_string(signature.most_inputs);
  throw Misfit("takes " + expected + " inputs, not " + std::to_string(inputs));
}

// The outputs of an op. Throws Misfit where inputs or attributes do not fit, std::out_of_range for an id that
// op_list.inc lacks.
inline std::vector<Tensor> outputs_of(const Op& op, const void* attributes, Tensors inputs) {
  const Signature& signature = op.signature;
  require_input_count(signature, inputs.size());
  Sizes sizes;
  for (std::size_t i = 0; i < inputs.size(); ++i) sizes.match(signature.input(i), inputs[i]);
  for (const std::string_view size : signature.positive) {
    require(!sizes.has(size) || sizes.value(size) > 0, std::string(size) + " must not be 0 in " + std::string(op.text));
  }
  require_attribute_ranges(op.id, attributes);
  const AnyAttributes given(attributes);
  detail::require_attributes(op.id, given, inputs);
  std::vector<Tensor> outputs;
  for (const Pattern& output : signature.outputs) {
    if (output.optional && static_cast<std::size_t>(output.in_place) >= inputs.size()) continue;
    if (output.in_place >= 0) {
      outputs.push_back(inputs[static_cast<std::size_t>(output.in_place)]);
    } else if (output.computed) {
      outputs.push_back(detail::computed_output(op.id, given, inputs));
      if (output.floating) outputs.back().dtype = sizes.dtype(output);
    } else {
      outputs.push_back(sizes.tensor(output));
      // A copy keeps the dtype; what it is converted to is the output's.
      if (output.dtypes.size() > 1 && !output.floating) outputs.back().dtype = inputs[0].dtype;
    }
  }
  return outputs;
}

namespace detail {

// Tensor `at` of a list, of which nothing is known yet.
inline Tensor tensor_at(const gpunn_tensor* const* list, std::size_t at, const Pattern& pattern, bool strided) {
  const std::string name = std::string(pattern.name) + " ";
  require(list != nullptr && list[at] != nullptr, name + "is missing");
  const gpunn_tensor& tensor = *list[at];
  require(tensor.rank >= 0 && tensor.rank <= GPUNN_MAX_RANK,
          name + "has rank " + std::to_string(tensor.rank) + ", not 0 to 8");
  Tensor made{tensor.dtype, {tensor.dim, tensor.dim + tensor.rank}};
  // Of the sizes that are not 0, so that no partial product overflows either.
  constexpr int64_t kMostElements = std::numeric_limits<int64_t>::max() / 16;
  int64_t elements = 1;
  for (const int64_t size : made.shape) {
    require(size >= 0 && (size == 0 || elements <= kMostElements / size),
            name + "has a size that is negative or beyond any memory: " + text_of(made));
    if (size != 0) elements *= size;
  }
  require(
      strided || plugin::element_count(tensor) == 0 || plugin::is_packed(tensor) || plugin::is_channels_last(tensor),
      name + (tensor.rank == 4 ? "must be packed row-major or channels-last" : "must be packed row-major"));
  return made;
}

// The tensor with the dimensions of size 1 in front that make images of what is broadcast to them.
inline gpunn_tensor broadcast_image(gpunn_tensor tensor) {
  for (; tensor.rank < 4; ++tensor.rank) {
    std::copy_backward(tensor.dim, tensor.dim + tensor.rank, tensor.dim + tensor.rank + 1);
    std::copy_backward(tensor.stride, tensor.stride + tensor.rank, tensor.stride + tensor.rank + 1);
    tensor.dim[0] = 1;
  }
  return tensor;
}

// All images of an op have one layout. What an elementwise op broadcasts to channels-last images lies in their order,
// as a single number does, or a number for each channel.
inline void require_one_layout(const Signature& signature, const plugin::OpDesc& desc) {
  if (signature.strided || !plugin::has_channels_last(desc)) return;
  const bool differs = plugin::any_tensor(desc, [&](const gpunn_tensor& tensor) {
    if (plugin::element_count(tensor) == 0) return false;
    if (signature.elementwise) return !plugin::is_channels_last(broadcast_image(tensor));
    return tensor.rank == 4 && !plugin::is_channels_last(tensor);
  });
  require(!differs, signature.elementwise ? "what it broadcasts to channels-last images must lie in their order"
                                          : "its images must be all packed row-major or all channels-last");
}

}  // namespace detail

// Throws Misfit where inputs, attributes or outputs are not what the op's row declares. An op that op_list.inc lacks
// may be anything.
inline void require_declared(const plugin::OpDesc& desc) {
  const auto found = all().find(desc.op());
  if (found == all().end()) return;
  const Op& op = found->second;
  const Signature& signature = op.signature;
  const gpunn_op_desc& raw = desc.raw();
  require(raw.attrs != nullptr || op.attributes == sizeof(gpunn_no_attrs), "the attributes are missing");
  require_input_count(signature, desc.inputs());
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < desc.inputs(); ++i) {
    inputs.push_back(detail::tensor_at(raw.inputs, i, signature.input(i), signature.strided));
  }
  const std::vector<Tensor> outputs = outputs_of(op, raw.attrs, inputs);
  require(outputs.size() == desc.outputs(),
          "has " + std::to_string(outputs.size()) + " outputs, not " + std::to_string(desc.outputs()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Pattern& pattern = signature.outputs[i];
    const Tensor given = detail::tensor_at(raw.outputs, i, pattern, signature.strided);
    const bool chosen = !pattern.computed && !pattern.floating &&
                        std::ranges::find(pattern.dtypes, given.dtype) != pattern.dtypes.end();
    require(given.shape == outputs[i].shape && (chosen || given.dtype == outputs[i].dtype),
            std::string(pattern.name) + " must be " + text_of(outputs[i]) + ", is " + text_of(given));
  }
  detail::require_one_layout(signature, desc);
}

}  // namespace gpunn::ops
