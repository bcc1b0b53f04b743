#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interchange/export/onnx_builder.hpp"

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

void quantize_weights(OnnxBuilder& b, const OnnxStep& step) {
  constexpr float kMost = 127;
  const graph::ValueId weight = step.inputs[1];
  const std::span<const float> w = b.parameter(weight);
  const Shape& shape = b.graph().value(weight).type.shape;
  const auto filters = static_cast<std::size_t>(shape[0]);
  const std::size_t row = w.size() / filters;
  std::vector<float> scales(filters, 1);
  std::vector<std::byte> stored(w.size()), zeros(filters, std::byte{0});
  for (std::size_t k = 0; k < filters; ++k) {
    const std::span<const float> filter = w.subspan(k * row, row);
    float most = 0;
    for (const float value : filter) most = std::max(most, std::abs(value));
    if (most > 0) scales[k] = static_cast<float>(static_cast<double>(most) / static_cast<double>(kMost));
    for (std::size_t i = 0; i < row; ++i) {
      const double whole = std::nearbyint(static_cast<double>(filter[i]) / static_cast<double>(scales[k]));
      stored[k * row + i] = static_cast<std::byte>(static_cast<int8_t>(whole));
    }
  }
  const std::string& layer = step.node->name;
  const auto count = static_cast<int64_t>(filters);
  const std::string name = b.add(layer, "DequantizeLinear",
                                 {b.bytes(layer, OnnxType::i8, stored, shape), b.floats(layer, scales, {count}),
                                  b.bytes(layer, OnnxType::i8, zeros, {count})},
                                 {{"axis", int64_t{0}}}, false);
  b.define(weight, name);
}

}  // namespace gpunn::interchange
