#pragma once

#include <gpunn/model_info.hpp>

#include <string>

#include "export/onnx_builder.hpp"

namespace gpunn::interchange {

// What `gpunn predict` does to an image in front of the model, as nodes: a picture u8[height, width, channels], grey or
// in colours and with or without opacity, becomes a sample f32[1, C, H, W] of bytes. All values are exactly those of
// data::fitted_sample().
class ImagePreparation {
 public:
  // `picture` is the graph's input.
  ImagePreparation(OnnxBuilder& builder, const Field& input, std::string picture);

  // The sample.
  std::string run();
  // Boxes f32[1, K, 4] in pixels of the sample, in pixels of the picture.
  std::string boxes_on_picture(const std::string& boxes);

 private:
  // A side of the picture: its length, the length that all of it is scaled to, and the part of that which the sample
  // has. The lengths are i64, the part's beginning is f64, all without dimensions.
  struct Side {
    std::string length, target, first, kept;
  };

  std::string add(const char* op, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {});
  std::string number(double value);
  std::string integer(int64_t value);
  std::string cast(const std::string& x, OnnxType to);
  std::string size(int64_t dimension);
  std::string as_list(const std::string& x);

  std::string colours();
  std::string grey(const std::string& colours);
  std::string has_light_background(const std::string& grey);
  void measure();
  void crop(int64_t height, int64_t width);
  void fit_inside(int64_t height, int64_t width);
  std::string weights(const Side& side);
  std::string rounded(const std::string& sums);
  std::string resized(const std::string& image);
  std::string on_grey(const std::string& image);

  OnnxBuilder& b_;
  const Field& input_;
  std::string picture_, shape_;
  Side rows_, columns_;
  std::string scale_;  // of ImageFit::inside
};

// How an image becomes a sample, for the metadata: JSON. Empty if samples are not images of bytes.
std::string preparation_text(const ModelInfo& info);

}  // namespace gpunn::interchange
