#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "export/onnx_builder.hpp"

namespace gpunn::interchange {

bool add_quantization_step(OnnxBuilder& b, const OnnxStep& step) {
  if (step.node->op != GPUNN_OP_FAKE_QUANTIZE) return false;
  const std::string& layer = step.node->name;
  const auto attrs = step.node->attrs.as<gpunn_quantize_attrs>();
  const auto zero_point = static_cast<std::byte>(attrs.zero_point);
  const std::string scale = b.floats(layer, {attrs.scale}, {});
  const std::string zero = b.bytes(layer, OnnxType::u8, {&zero_point, 1}, {});
  const std::string stored = b.add(layer, "QuantizeLinear", {b.tensor(step.inputs[0]), scale, zero}, {}, false);
  b.define(step.outputs.front(), b.add(layer, "DequantizeLinear", {stored, scale, zero}));
  return true;
}

namespace {

// Integers of eight bits for weights, those of each output in steps of its own.
void add_integers(OnnxBuilder& b, const std::string& layer, graph::ValueId weight, std::span<const float> w,
                  const std::vector<float>& scales) {
  constexpr double kLeast = -128, kMost = 127;
  const Shape& shape = b.graph().value(weight).type.shape;
  const std::size_t row = w.size() / scales.size();
  std::vector<std::byte> stored(w.size()), zeros(scales.size(), std::byte{0});
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double whole = std::nearbyint(static_cast<double>(w[i]) / static_cast<double>(scales[i / row]));
    stored[i] = static_cast<std::byte>(static_cast<int8_t>(std::clamp(whole, kLeast, kMost)));
  }
  const auto count = static_cast<int64_t>(scales.size());
  const std::string name = b.add(layer, "DequantizeLinear",
                                 {b.bytes(layer, OnnxType::i8, stored, shape), b.floats(layer, scales, {count}),
                                  b.bytes(layer, OnnxType::i8, zeros, {count})},
                                 {{"axis", int64_t{0}}}, false);
  b.define(weight, name);
}

}  // namespace

void add_int8_weight(OnnxBuilder& b, const std::string& layer, const inference::Int8Weight& stored,
                     graph::ValueId weight) {
  const std::span<const float> steps = b.numbers(stored.steps);
  add_integers(b, layer, weight, b.numbers(stored.weight), {steps.begin(), steps.end()});
}

void quantize_weights(OnnxBuilder& b, const OnnxStep& step) {
  constexpr double kMost = 127;
  const graph::ValueId weight = step.inputs[1];
  const std::span<const float> w = b.numbers(weight);
  const auto filters = static_cast<std::size_t>(b.graph().value(weight).type.shape[0]);
  const std::size_t row = w.size() / filters;
  std::vector<float> scales(filters, 1);
  for (std::size_t k = 0; k < filters; ++k) {
    float most = 0;
    for (const float value : w.subspan(k * row, row)) most = std::max(most, std::abs(value));
    if (most > 0) scales[k] = static_cast<float>(static_cast<double>(most) / kMost);
  }
  add_integers(b, step.node->name, weight, w, scales);
}

}  // namespace gpunn::interchange
