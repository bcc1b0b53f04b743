#include <gpunn/ops.h>

#include "conformance/gradients/function.hpp"

namespace gpunn::conformance {

namespace {

GradientCase pooling(const Shape& x, const gpunn_pool2d_attrs& attrs) {
  const auto attributes = graph::Attributes::of(attrs);
  return {.name = "of MAX_POOL2D, x " + to_string(x) + ", window " + std::to_string(attrs.window[0]) + "x" +
                  std::to_string(attrs.window[1]),
          .inputs = {f32(x, apart())},
          .forward = oracle_function(GPUNN_OP_MAX_POOL2D, attributes),
          .op = GPUNN_OP_MAX_POOL2D_BACKWARD,
          .attrs = attributes,
          .wires = {{Source::output_gradient, 0}, {Source::input, 0}, {Source::output, 0}},
          .with_respect = {0}};
}

GradientCase mean_rows(int64_t rows, int64_t count) {
  return {.name = "of MEAN_ROWS, " + std::to_string(count) + " of " + std::to_string(rows) + " rows",
          .inputs = {f32({rows}), i32({}, constant(static_cast<double>(count)))},
          .forward = oracle_function(GPUNN_OP_MEAN_ROWS),
          .op = GPUNN_OP_MEAN_ROWS_BACKWARD,
          .attrs = graph::Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows}),
          .wires = {{Source::output_gradient, 0}, {Source::input, 1}},
          .with_respect = {0}};
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
  return {
      pooling({2, 3, 6, 6}, {.struct_size = 0, .window = {2, 2}, .stride = {2, 2}, .pad = {0, 0}, .reserved = 0}),
      pooling({1, 2, 7, 8}, {.struct_size = 0, .window = {3, 3}, .stride = {2, 1}, .pad = {1, 1}, .reserved = 0}),
      pooling({2, 1, 5, 9}, {.struct_size = 0, .window = {2, 3}, .stride = {1, 3}, .pad = {1, 0}, .reserved = 0}),
      mean_rows(9, 9),
      mean_rows(9, 4),
      mean_rows(5, 0),
      {.name = "of SCALE",
       .inputs = {f32({7, 9})},
       .forward = oracle_function(GPUNN_OP_SCALE, scale),
       .op = GPUNN_OP_SCALE,
       .attrs = scale,
       .wires = {dy},
       .with_respect = {0}},
      {.name = "of DROPOUT",
       .inputs = {f32({13, 7}), i64({}, constant(5))},
       .forward = oracle_function(GPUNN_OP_DROPOUT, dropout),
       .op = GPUNN_OP_DROPOUT,
       .attrs = dropout,
       .wires = {dy, {Source::input, 1}},
       .with_respect = {0}},
  };
}

}  // namespace gpunn::conformance
