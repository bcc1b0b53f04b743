#pragma once

#include <gpunn/model_info.hpp>

#include <string>

#include "export/onnx_builder.hpp"

namespace gpunn::interchange {

// What `gpunn upscale` and `gpunn stylize` do around a model that makes images of photographs, as nodes: a picture
// u8[height, width, channels], grey or in colours, becomes the model's input, and what the model makes of it a picture.
// Opacity is left out.
class PhotographSteps {
 public:
  // `picture` is the graph's input.
  PhotographSteps(OnnxBuilder& builder, const PhotographInfo& photographs, std::string picture);

  // f32[1, C, H, W], from 0 to 1.
  std::string before();
  // u8[height, width, channels] of what the model makes of that.
  std::string after(const std::string& output);

 private:
  std::string add(const char* op, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {});
  std::string size(int64_t dimension);  // of the picture, i64[1]
  std::string integers(const std::vector<int64_t>& values);
  std::string mixed(const std::string& colours, const std::vector<float>& weights, int64_t results, float raised);
  std::string channels_first(const std::string& image);
  std::string turned_over(const std::string& image, int64_t axis);
  std::string bicubic(const std::string& image);
  std::string filled_up(const std::string& image);
  std::string joined(const std::string& luma);

  OnnxBuilder& b_;
  PhotographInfo info_;
  std::string picture_, shape_, is_grey_, colours_;  // of a model that sees luma: the differences of colour
};

}  // namespace gpunn::interchange
