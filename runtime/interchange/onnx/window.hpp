#pragma once

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

// The windows of convolutions and poolings. For rows [C, L], the window is over an image of [C, 1, L].
struct WindowOf2d {
  Value x;      // the input as images
  Shape image;  // C, H, W
  bool is_1d = false;
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<int64_t> pads;  // top, left, bottom, right
  bool ceil = false;
  std::vector<int64_t> output;  // rows and columns

  std::vector<std::string> margins() const { return texts({pads[0], pads[2], pads[1], pads[3]}); }
  // What a layer gives, as the node gives it.
  Value finished(Call& call, const Value& y) const;
};

// The input's image, or line of numbers as one.
WindowOf2d image_of(Call& call);

// `kernel`: of the weights, rows and columns; empty: the node's attribute says it. Throws Unsupported for what is
// neither an image nor a line of numbers.
WindowOf2d window_of(Call& call, const std::vector<int64_t>& kernel);

// Of as many integers as the input has dimensions besides batch and channels, or of that twice; those of the row of a
// line are put in front.
std::vector<int64_t> window_numbers(const Call& call, const WindowOf2d& w, const char* name, std::size_t times,
                                    int64_t fallback, int64_t least);

}  // namespace gpunn::interchange
