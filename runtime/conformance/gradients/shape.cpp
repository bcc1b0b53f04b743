#include <gpunn/ops.h>

#include <array>
#include <cstdint>

#include "conformance/gradients/function.hpp"

namespace gpunn::conformance {

namespace {

gpunn_pool2d_attrs window(std::array<int32_t, 2> size, std::array<int32_t, 2> stride, std::array<int32_t, 2> pad,
                          int32_t count_padding) {
  return {.struct_size = 0,
          .window = {size[0], size[1]},
          .stride = {stride[0], stride[1]},
          .pad = {pad[0], pad[1]},
          .count_padding = count_padding,
          .input_size = {0, 0}};
}

GradientCase pooling(const Shape& x, const gpunn_pool2d_attrs& attrs) {
  const auto attributes = graph::Attributes::of(attrs);
  return {.name = "of MAX_POOL2D, x " + to_string(x) + ", window " + std::to_string(attrs.window[0]) + "x" +
                  std::to_string(attrs.window[1]),
          .inputs = {f32(x, apart())},
          .forward = reference_function(GPUNN_OP_MAX_POOL2D, attributes),
          .op = GPUNN_OP_MAX_POOL2D_BACKWARD,
          .attrs = attributes,
          .wires = {{Source::output_gradient, 0}, {Source::input, 0}, {Source::output, 0}},
          .with_respect = {0}};
}

GradientCase average(const Shape& x, gpunn_pool2d_attrs attrs) {
  for (std::size_t i = 0; i < 2; ++i) attrs.input_size[i] = static_cast<int32_t>(x[2 + i]);
  const auto attributes = graph::Attributes::of(attrs);
  return {.name = "of AVG_POOL2D, x " + to_string(x) + ", window " + std::to_string(attrs.window[0]) + "x" +
                  std::to_string(attrs.window[1]) + (attrs.count_padding != 0 ? ", padding counted" : ""),
          .inputs = {f32(x)},
          .forward = reference_function(GPUNN_OP_AVG_POOL2D, attributes),
          .op = GPUNN_OP_AVG_POOL2D_BACKWARD,
          .attrs = attributes,
          .wires = {{Source::output_gradient, 0}},
          .with_respect = {0}};
}

GradientCase mean_rows(int64_t rows, int64_t count) {
  return {.name = "of MEAN_ROWS, " + std::to_string(count) + " of " + std::to_string(rows) + " rows",
          .inputs = {f32({rows}), i32({}, constant(static_cast<double>(count)))},
          .forward = reference_function(GPUNN_OP_MEAN_ROWS),
          .op = GPUNN_OP_MEAN_ROWS_BACKWARD,
          .attrs = graph::Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows}),
          .wires = {{Source::output_gradient, 0}, {Source::input, 1}},
          .with_respect = {0}};
}

graph::Attributes padding() {
  gpunn_pad_attrs attrs{};
  attrs.rank = 3;
  attrs.before[1] = 2;
  attrs.after[1] = attrs.after[2] = 1;
  return graph::Attributes::of(attrs);
}

// What padding() puts x[2,3,4] at.
graph::Attributes middle() {
  gpunn_slice_attrs attrs{};
  attrs.rank = 3;
  attrs.start[1] = 2;
  attrs.size[0] = 2, attrs.size[1] = 3, attrs.size[2] = 4;
  return graph::Attributes::of(attrs);
}

graph::Attributes permutation(int32_t first, int32_t second, int32_t third) {
  gpunn_transpose_attrs attrs{};
  attrs.rank = 3;
  attrs.permutation[0] = first, attrs.permutation[1] = second, attrs.permutation[2] = third;
  return graph::Attributes::of(attrs);
}

void add_moves(std::vector<GradientCase>& cases) {
  const Wire dy{Source::output_gradient, 0};
  const auto add = [&](const std::string& name, const Shape& x, int32_t op, const graph::Attributes& attrs,
                       int32_t backward, const graph::Attributes& backward_attrs) {
    cases.push_back({.name = name,
                     .inputs = {f32(x)},
                     .forward = reference_function(op, attrs),
                     .op = backward,
                     .attrs = backward_attrs,
                     .wires = {dy},
                     .with_respect = {0}});
  };
  for (const int32_t mode : {GPUNN_UPSAMPLE_NEAREST, GPUNN_UPSAMPLE_BILINEAR}) {
    const auto upsample =
        graph::Attributes::of(gpunn_upsample2d_attrs{.struct_size = 0, .factor = {3, 2}, .mode = mode});
    add(mode == GPUNN_UPSAMPLE_NEAREST ? "of UPSAMPLE2D, nearest" : "of UPSAMPLE2D, bilinear", {2, 2, 4, 3},
        GPUNN_OP_UPSAMPLE2D, upsample, GPUNN_OP_UPSAMPLE2D_BACKWARD, upsample);
  }
  const auto reflect =
      graph::Attributes::of(gpunn_reflect_pad2d_attrs{.struct_size = 0, .before = {2, 1}, .after = {1, 3}});
  add("of REFLECT_PAD2D", {2, 2, 3, 5}, GPUNN_OP_REFLECT_PAD2D, reflect, GPUNN_OP_REFLECT_PAD2D_BACKWARD, reflect);
  add("of PAD", {2, 3, 4}, GPUNN_OP_PAD, padding(), GPUNN_OP_SLICE, middle());
  add("of SLICE", {2, 6, 5}, GPUNN_OP_SLICE, middle(), GPUNN_OP_PAD, padding());
  add("of TRANSPOSE", {2, 3, 4}, GPUNN_OP_TRANSPOSE, permutation(1, 2, 0), GPUNN_OP_TRANSPOSE, permutation(2, 0, 1));
}

}  // namespace

std::vector<GradientCase> shape_gradients() {
  gpunn_dropout_attrs dropping{};
  dropping.p = 0.4F;
  dropping.seed = 11;
  dropping.stream = 3;
  const auto dropout = graph::Attributes::of(dropping);
  const auto scale = graph::Attributes::of(gpunn_scale_attrs{.struct_size = 0, .factor = -1.75F});
  const Wire dy{Source::output_gradient, 0};
  std::vector<GradientCase> cases{
      pooling({2, 3, 6, 6}, window({2, 2}, {2, 2}, {0, 0}, 0)),
      pooling({1, 2, 7, 8}, window({3, 3}, {2, 1}, {1, 1}, 0)),
      pooling({2, 1, 5, 9}, window({2, 3}, {1, 3}, {1, 0}, 0)),
      average({2, 3, 6, 6}, window({2, 2}, {2, 2}, {0, 0}, 0)),
      average({1, 2, 7, 8}, window({3, 3}, {2, 1}, {1, 1}, 0)),
      average({1, 2, 7, 8}, window({3, 3}, {2, 1}, {1, 1}, 1)),
      average({2, 3, 5, 4}, window({5, 4}, {1, 1}, {0, 0}, 0)),
      mean_rows(9, 9),
      mean_rows(9, 4),
      mean_rows(5, 0),
      {.name = "of SCALE",
       .inputs = {f32({7, 9})},
       .forward = reference_function(GPUNN_OP_SCALE, scale),
       .op = GPUNN_OP_SCALE,
       .attrs = scale,
       .wires = {dy},
       .with_respect = {0}},
      {.name = "of DROPOUT",
       .inputs = {f32({13, 7}), i64({}, constant(5))},
       .forward = reference_function(GPUNN_OP_DROPOUT, dropout),
       .op = GPUNN_OP_DROPOUT,
       .attrs = dropout,
       .wires = {dy, {Source::input, 1}},
       .with_respect = {0}},
  };
  add_moves(cases);
  return cases;
}

}  // namespace gpunn::conformance
