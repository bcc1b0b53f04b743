// Layers whose formula over core ops is one operator of ONNX's: QuantizeLinear and DynamicQuantizeLinear.
#pragma once

#include <gpunn/model_spec.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "export/onnx_builder.hpp"

namespace gpunn::interchange {

class QuantizeLayers {
 public:
  // The steps must outlive it.
  QuantizeLayers(const OnnxBuilder& builder, const ModelSpec& model, std::span<const OnnxStep> steps);

  // Whether the step is one of a layer's formula: then the last of them appends the operator.
  bool add(OnnxBuilder& builder, const OnnxStep& step) const;

 private:
  struct Formula {
    std::vector<const OnnxStep*> steps = {};
    OnnxType type = OnnxType::u8;  // of the integers
    bool is_dynamic = false;
  };

  std::map<std::string, Formula> formulas_;  // by the layer's name, which its ops have
};

}  // namespace gpunn::interchange
