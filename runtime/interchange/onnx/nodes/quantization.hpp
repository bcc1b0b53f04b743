// Quantised tensors: q stands for (q - zero_point) * scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

// What a node says about a quantised tensor.
struct Quantization {
  const Value* scale = nullptr;
  const Value* zero_point = nullptr;  // nullptr: 0
  std::size_t axis = 0;               // that several scales are along
  int64_t block = 0;                  // how many neighbours along it share a scale; 0: the axis has no blocks
};

// The least and the largest integer. Throws Unsupported if integers of this type can't be imported.
std::pair<int64_t, int64_t> integers_of(Element element);

// What q stands for. A constant gives a constant. The integers of a tensor that has the same scale and zero point give
// a layer `quantize` of that tensor.
Value dequantized(Call& call, const Value& q, const Quantization& by);
// The integers that stand for x. Layers hold them as f32, which is exact.
Value quantized(Call& call, const Value& x, const Quantization& by, Element element);

// Sets the layer's key `int8_weight` and its scales, if its weights are integers of eight bits times a scale for each
// output.
void keep_scales(Call& call, const Value& layer, const Shape& shape, const Constant& weights);

}  // namespace gpunn::interchange
