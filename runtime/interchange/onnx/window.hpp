#pragma once

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

// What convolutions and poolings of images say of their windows.
struct WindowOf2d {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<int64_t> pads;  // top, left, bottom, right
  bool ceil = false;
  std::vector<int64_t> output;  // rows and columns

  std::vector<std::string> margins() const { return texts({pads[0], pads[2], pads[1], pads[3]}); }
};

// `kernel`: of the weights, empty: the node's attribute says it. Throws Unsupported for what is no image.
WindowOf2d window_of(const Call& call, std::vector<int64_t> kernel);

}  // namespace gpunn::interchange
