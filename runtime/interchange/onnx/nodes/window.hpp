#pragma once

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

// The windows of convolutions and poolings over lines [C, L], images [C, H, W] and volumes [C, D, H, W]. All lists have
// a number for each dimension behind the channels. Samples of several lines or images, [k*N, C, ...], are volumes or
// images of k planes, which no window joins.
struct Window {
  Value x;
  Shape row;  // [C, ...]
  bool has_planes = false;
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<int64_t> begins, ends;  // of the padding
  bool ceil = false;
  std::vector<int64_t> output;

  std::size_t dimensions() const { return row.size() - 1; }
  int64_t reach(std::size_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
  // The padding as layers have it: both sides of each dimension.
  std::vector<std::string> margins() const;
  // The shape of a row of the output.
  Shape with_channels(int64_t channels) const;
  // Numbers of a node for each of its dimensions, or for each of their sides, with those of planes.
  std::vector<int64_t> with_planes(std::vector<int64_t> numbers, int64_t of_planes) const;
  // What a layer gives, as the node gives it.
  Value finished(Call& call, const Value& y) const;
};

// The input alone. Throws Unsupported where it is neither lines, images nor volumes.
Window window_over_input(Call& call);

// The window that a pooling's attributes say, and the sizes of the output.
Window window_of(Call& call);
// Likewise over an input. `kernel`: of the weights; empty: the node's attribute says it.
void slide(const Call& call, Window& w, const std::vector<int64_t>& kernel);

// An attribute of as many integers as the node has dimensions, or of that `times`. Those of planes are `least`.
std::vector<int64_t> window_numbers(const Call& call, const Window& w, const char* name, std::size_t times,
                                    int64_t fallback, int64_t least);
// The attributes of kernel, steps, gaps and padding.
void read_window(const Call& call, Window& w, const std::vector<int64_t>& kernel);

}  // namespace gpunn::interchange
