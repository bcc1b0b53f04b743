#include "export/quantize_layers.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

namespace gpunn::interchange {

namespace {

// QuantizeLinear has integers of eight bits at every opset. Nothing: the layer has another range.
std::optional<OnnxType> type_of(const LayerSpec& layer) {
  const auto key = [&](const char* name, const char* fallback) -> std::string {
    const auto found = std::ranges::find(layer.parameters, name, &LayerParameter::name);
    return found == layer.parameters.end() ? fallback : found->values.front();
  };
  const std::pair range{key("low", "0"), key("high", "255")};
  if (range == std::pair<std::string, std::string>{"0", "255"}) return OnnxType::u8;
  if (range == std::pair<std::string, std::string>{"-128", "127"}) return OnnxType::i8;
  return std::nullopt;
}

const OnnxStep& step_of(const std::vector<const OnnxStep*>& steps, int32_t op) {
  return **std::ranges::find_if(steps, [&](const OnnxStep* step) { return step->node->op == op; });
}

// The dimensions along which a buffer has more than one number.
std::vector<int64_t> long_dimensions(const Shape& shape) {
  std::vector<int64_t> found;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1) found.push_back(static_cast<int64_t>(d));
  }
  return found;
}

std::string as_floats(OnnxBuilder& b, const std::string& layer, const std::string& integers) {
  return b.add(layer, "Cast", {integers}, {{"to", static_cast<int64_t>(OnnxType::f32)}});
}

void add_quantize_linear(OnnxBuilder& b, const std::vector<const OnnxStep*>& steps, OnnxType type) {
  const OnnxStep& quotient = step_of(steps, GPUNN_OP_DIV);
  const OnnxStep& last = *steps.back();
  const std::string& layer = last.node->name;
  const std::span<const float> scales = b.numbers(quotient.inputs[1]), zeros = b.numbers(last.inputs[1]);
  std::vector<std::byte> bytes;
  for (const float zero : zeros) bytes.push_back(static_cast<std::byte>(static_cast<int32_t>(zero)));
  const std::vector<int64_t> along = long_dimensions(b.graph().value(quotient.inputs[1]).type.shape);
  const Shape shape = along.empty() ? Shape{} : Shape{std::ssize(scales)};
  std::vector<OnnxAttribute> axis;
  if (!along.empty()) axis.push_back({"axis", along.front()});
  const std::string integers =
      b.add(layer, "QuantizeLinear",
            {b.tensor(quotient.inputs[0]), b.floats(layer, {scales.begin(), scales.end()}, shape),
             b.bytes(layer, type, bytes, shape)},
            std::move(axis), false);
  b.define(last.outputs.front(), as_floats(b, layer, integers));
}

// The layer gives one of the three results: the integers, or a number that EXPAND repeats for each row.
void add_dynamic_quantize(OnnxBuilder& b, const std::vector<const OnnxStep*>& steps) {
  const OnnxStep& last = *steps.back();
  const std::string& layer = last.node->name;
  const std::string integers =
      b.add(layer, "DynamicQuantizeLinear", {b.tensor(step_of(steps, GPUNN_OP_SCALE).inputs[0])}, {}, false);
  const std::string scale = b.unique(integers + ".scale"), zero_point = b.unique(integers + ".zero_point");
  b.model().nodes.back().outputs = {integers, scale, zero_point};
  if (last.node->op != GPUNN_OP_EXPAND) return b.define(last.outputs.front(), as_floats(b, layer, integers));
  const graph::ValueId one = last.inputs.front();
  const bool is_scale = std::ranges::any_of(
      steps, [&](const OnnxStep* step) { return step->node->op == GPUNN_OP_SELECT && step->outputs.front() == one; });
  b.define(one, is_scale ? scale : as_floats(b, layer, zero_point));
  add_onnx_step(b, last);
}

}  // namespace

QuantizeLayers::QuantizeLayers(const OnnxBuilder& builder, const ModelSpec& model, std::span<const OnnxStep> steps) {
  for (const LayerSpec& layer : model.layers) {
    const bool is_dynamic = layer.type == "dynamic_quantize";
    if (!is_dynamic && layer.type != "quantize_linear") continue;
    const std::optional<OnnxType> type = is_dynamic ? OnnxType::u8 : type_of(layer);
    if (type) formulas_[layer.name] = {.type = *type, .is_dynamic = is_dynamic};
  }
  for (const OnnxStep& step : steps) {
    const auto found = formulas_.find(step.node->name);
    if (found != formulas_.end()) found->second.steps.push_back(&step);
  }
  // Layers whose scales differ along several dimensions stay a formula.
  std::erase_if(formulas_, [&](const auto& one) {
    const Formula& formula = one.second;
    if (formula.steps.empty()) return true;
    if (formula.is_dynamic) return false;
    const graph::ValueId scales = step_of(formula.steps, GPUNN_OP_DIV).inputs[1];
    return long_dimensions(builder.graph().value(scales).type.shape).size() > 1;
  });
}

bool QuantizeLayers::add(OnnxBuilder& builder, const OnnxStep& step) const {
  const auto found = formulas_.find(step.node->name);
  if (found == formulas_.end()) return false;
  const Formula& formula = found->second;
  if (&step != formula.steps.back()) return true;
  if (formula.is_dynamic) {
    add_dynamic_quantize(builder, formula.steps);
  } else {
    add_quantize_linear(builder, formula.steps, formula.type);
  }
  return true;
}

}  // namespace gpunn::interchange
