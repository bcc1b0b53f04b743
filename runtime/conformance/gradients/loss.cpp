#include <gpunn/ops.h>

#include "conformance/gradients/function.hpp"

namespace gpunn::conformance {

std::vector<GradientCase> loss_gradients() {
  const Wire dy{Source::output_gradient, 0}, y{Source::output, 0}, x{Source::input, 0}, second{Source::input, 1};
  std::vector<GradientCase> cases;
  for (const auto& [rows, classes] : std::vector<std::pair<int64_t, int64_t>>{{4, 7}, {1, 2}, {3, 21}}) {
    const Shape shape{rows, classes};
    const std::string of = ", x " + to_string(shape);
    const InputSpec logits = f32(shape, uniform(-3, 3)), labels = i32({rows}, integers(0, classes - 1));
    const auto class_count =
        graph::Attributes::of(gpunn_classes_attrs{.struct_size = 0, .classes = static_cast<int32_t>(classes)});
    cases.push_back({.name = "of SOFTMAX" + of,
                     .inputs = {logits},
                     .forward = oracle_function(GPUNN_OP_SOFTMAX),
                     .op = GPUNN_OP_SOFTMAX_BACKWARD,
                     .attrs = {},
                     .wires = {dy, y},
                     .with_respect = {0}});
    cases.push_back({.name = "of LOG_SOFTMAX" + of,
                     .inputs = {logits},
                     .forward = oracle_function(GPUNN_OP_LOG_SOFTMAX),
                     .op = GPUNN_OP_LOG_SOFTMAX_BACKWARD,
                     .attrs = {},
                     .wires = {dy, y},
                     .with_respect = {0}});
    cases.push_back({.name = "of NLL_LOSS" + of,
                     .inputs = {logits, labels},
                     .forward = oracle_function(GPUNN_OP_NLL_LOSS),
                     .op = GPUNN_OP_NLL_LOSS_BACKWARD,
                     .attrs = class_count,
                     .wires = {dy, second},
                     .with_respect = {0}});
    cases.push_back({.name = "of SOFTMAX_CROSS_ENTROPY" + of,
                     .inputs = {logits, labels},
                     .forward = oracle_function(GPUNN_OP_SOFTMAX_CROSS_ENTROPY),
                     .op = GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD,
                     .attrs = {},
                     .wires = {dy, {Source::output, 1}, second},
                     .with_respect = {0}});
    cases.push_back({.name = "of SOFT_CROSS_ENTROPY" + of,
                     .inputs = {logits, f32(shape, uniform(0, 1))},
                     .forward = oracle_function(GPUNN_OP_SOFT_CROSS_ENTROPY),
                     .op = GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD,
                     .attrs = {},
                     .wires = {dy, {Source::output, 1}, second},
                     .with_respect = {0}});
  }
  for (const int32_t power : {1, 2}) {
    // No two scores are a margin apart, where the hinge has its kink.
    const auto hinge = graph::Attributes::of(gpunn_hinge_attrs{.struct_size = 0, .margin = 20.01F, .power = power});
    cases.push_back({.name = "of HINGE_LOSS, power " + std::to_string(power),
                     .inputs = {f32({5, 7}, apart(0.02)), i32({5}, integers(0, 6))},
                     .forward = oracle_function(GPUNN_OP_HINGE_LOSS, hinge),
                     .op = GPUNN_OP_HINGE_LOSS_BACKWARD,
                     .attrs = hinge,
                     .wires = {dy, x, second},
                     .with_respect = {0}});
  }
  for (const Shape& shape : {Shape{6}, Shape{3, 5}, Shape{2, 3, 2, 2}}) {
    cases.push_back({.name = "of BCE_LOGITS_LOSS, x " + to_string(shape),
                     .inputs = {f32(shape, uniform(-3, 3)), f32(shape, uniform(0, 1))},
                     .forward = oracle_function(GPUNN_OP_BCE_LOGITS_LOSS),
                     .op = GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD,
                     .attrs = {},
                     .wires = {dy, x, second},
                     .with_respect = {0}});
    // Some of apart's numbers are below this delta and some above, none near it.
    const auto huber = graph::Attributes::of(gpunn_huber_attrs{.struct_size = 0, .delta = 30});
    cases.push_back({.name = "of HUBER_LOSS, x " + to_string(shape),
                     .inputs = {f32(shape, apart(0.02)), f32(shape, constant(0))},
                     .forward = oracle_function(GPUNN_OP_HUBER_LOSS, huber),
                     .op = GPUNN_OP_HUBER_LOSS_BACKWARD,
                     .attrs = huber,
                     .wires = {dy, x, second},
                     .with_respect = {0}});
    cases.push_back({.name = "of MSE_LOSS, x " + to_string(shape),
                     .inputs = {f32(shape), f32(shape)},
                     .forward = oracle_function(GPUNN_OP_MSE_LOSS),
                     .op = GPUNN_OP_MSE_LOSS_BACKWARD,
                     .attrs = {},
                     .wires = {dy, x, second},
                     .with_respect = {0}});
  }
  return cases;
}

}  // namespace gpunn::conformance
