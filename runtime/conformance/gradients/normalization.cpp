#include <gpunn/ops.h>

#include "conformance/gradients/function.hpp"

namespace gpunn::conformance {

using ops::forward;

namespace {

// With x of a mean and a deviation that are not 0 and 1, and some rows that do not count.
GradientCase batch_norm(const Shape& x, int64_t count) {
  const auto attrs =
      graph::Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = 1e-2F, .momentum = 0.1F});
  const Shape channels{x[1]};
  GradientCase made{.name = "of BATCH_NORM, x " + to_string(x),
                    .inputs = {f32(x, uniform(-1, 3)), f32(channels), f32(channels), f32(channels), f32(channels)},
                    .forward = oracle_function(GPUNN_OP_BATCH_NORM, attrs),
                    .op = GPUNN_OP_BATCH_NORM_BACKWARD,
                    .attrs = {},
                    .wires = {{Source::output_gradient, 0},
                              {Source::input, 0},
                              {Source::input, 1},
                              {Source::output, 1},
                              {Source::output, 2}},
                    .with_respect = {0, 1, 2}};
  if (count < 0) return made;
  made.name += ", count " + std::to_string(count);
  made.inputs.push_back(i32({}, constant(static_cast<double>(count))));
  made.wires.push_back({Source::input, 5});
  // What comes back through the rows that do not count is not y's gradient: they are cut off.
  const Function forward = made.forward;
  made.forward = [forward, count](const std::vector<ReferenceTensor>& in) {
    std::vector<ReferenceTensor> out = forward(in);
    const int64_t row = out[0].type.elements() / out[0].type.shape[0];
    for (auto i = static_cast<std::size_t>(count * row); i < out[0].values.size(); ++i) out[0].values[i] = 0;
    return out;
  };
  return made;
}

GradientCase layer_norm(const Shape& x) {
  const auto attrs = graph::Attributes::of(gpunn_layer_norm_attrs{.struct_size = 0, .epsilon = 1e-2F});
  const Shape columns{x[1]};
  return {.name = "of LAYER_NORM, x " + to_string(x),
          .inputs = {f32(x, uniform(-1, 3)), f32(columns), f32(columns)},
          .forward = oracle_function(GPUNN_OP_LAYER_NORM, attrs),
          .op = GPUNN_OP_LAYER_NORM_BACKWARD,
          .attrs = {},
          .wires = {{Source::output_gradient, 0},
                    {Source::input, 0},
                    {Source::input, 1},
                    {Source::output, 1},
                    {Source::output, 2}},
          .with_respect = {0, 1, 2}};
}

// With an alpha at which the neighbours count.
GradientCase local_response_norm(const Shape& x, int32_t size) {
  const auto attrs = graph::Attributes::of(
      gpunn_local_response_norm_attrs{.struct_size = 0, .size = size, .alpha = 0.9F, .beta = 0.75F, .k = 1.5F});
  return {.name = "of LOCAL_RESPONSE_NORM, x " + to_string(x) + ", size " + std::to_string(size),
          .inputs = {f32(x, uniform(-2, 2))},
          .forward = oracle_function(GPUNN_OP_LOCAL_RESPONSE_NORM, attrs),
          .op = GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD,
          .attrs = attrs,
          .wires = {{Source::output_gradient, 0}, {Source::input, 0}},
          .with_respect = {0}};
}

}  // namespace

std::vector<GradientCase> normalization_gradients() {
  return {batch_norm({9, 3}, -1),
          batch_norm({3, 2, 2, 4}, -1),
          batch_norm({5, 2, 3}, 3),
          batch_norm({4, 3}, 4),
          layer_norm({3, 7}),
          layer_norm({1, 12}),
          local_response_norm({2, 7, 2, 2}, 5),
          local_response_norm({2, 6, 3}, 4),
          local_response_norm({3, 5}, 1),
          local_response_norm({1, 3, 2, 1}, 9)};
}

}  // namespace gpunn::conformance
