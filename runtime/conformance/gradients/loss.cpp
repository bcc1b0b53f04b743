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
  }
  for (const Shape& shape : {Shape{6}, Shape{3, 5}, Shape{2, 3, 2, 2}}) {
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
