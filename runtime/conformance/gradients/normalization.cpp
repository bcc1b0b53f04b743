#include <gpunn/ops.h>

#include "conformance/gradients/function.hpp"

namespace gpunn::conformance {

using ops::forward;

namespace {

// With x of a mean and a deviation that are not 0 and 1, of whose rows `count` enter the statistics.
GradientCase batch_norm(const Shape& x, int64_t count) {
  const auto attrs =
      graph::Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = 1e-2F, .momentum = 0.1F});
  const Shape channels{x[1]};
  GradientCase made{.name = "of BATCH_NORM, x " + to_string(x) + ", count " + std::to_string(count),
                    .inputs = {f32(x, uniform(-1, 3)), f32(channels), f32(channels), f32(channels), f32(channels),
                               i32({}, constant(static_cast<double>(count)))},
                    .forward = reference_function(GPUNN_OP_BATCH_NORM, attrs),
                    .op = GPUNN_OP_BATCH_NORM_BACKWARD,
                    .attrs = {},
                    .wires = {{Source::output_gradient, 0},
                              {Source::input, 0},
                              {Source::input, 1},
                              {Source::output, 1},
                              {Source::output, 2},
                              {Source::input, 5}},
                    .with_respect = {0, 1, 2}};
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

}  // namespace

std::vector<GradientCase> normalization_gradients() { return {batch_norm({5, 2, 3}, 3), batch_norm({4, 3}, 4)}; }

}  // namespace gpunn::conformance
