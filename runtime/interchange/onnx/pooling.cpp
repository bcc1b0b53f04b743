#include <algorithm>

#include "interchange/onnx/window.hpp"

namespace gpunn::interchange {

namespace {

void max_pool(Call& call) {
  const WindowOf2d w = window_of(call, {});
  if (w.dilation != std::vector<int64_t>{1, 1}) throw Unsupported("its window has gaps, which layers don't have");
  if (call.node().outputs.size() > 1 && !call.node().outputs[1].empty()) {
    throw Unsupported("gives the places of the maxima, which layers don't");
  }
  call.give_layer("max_pool",
                  {{"window", texts(w.kernel)},
                   {"stride", texts(w.stride)},
                   {"padding", w.margins()},
                   {"ceil_mode", {text(w.ceil)}}},
                  {call.sample(0)[0], w.output[0], w.output[1]});
}

void average_pool(Call& call) {
  const WindowOf2d w = window_of(call, {});
  if (w.dilation != std::vector<int64_t>{1, 1}) throw Unsupported("its window has gaps, which layers don't have");
  const Shape row = call.sample(0);
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t whole = (row[i + 1] + w.pads[i] + w.pads[i + 2] - w.kernel[i]) / w.stride[i] + 1;
    if (whole != w.output[i]) throw Unsupported("its last window is only partly in the image (ceil_mode)");
  }
  call.give_layer("avg_pool",
                  {{"window", texts(w.kernel)},
                   {"stride", texts(w.stride)},
                   {"padding", w.margins()},
                   {"count_padding", {text(call.integer("count_include_pad", 0) != 0)}}},
                  {row[0], w.output[0], w.output[1]});
}

Shape image(const Call& call) {
  Shape row = call.sample(0);
  if (row.size() != 3) throw Unsupported("takes " + to_string(call.data(0).shape) + "; layers take [N, C, H, W]");
  return row;
}

void global_average_pool(Call& call) {
  call.give_layer("adaptive_avg_pool", {{"size", {"1"}}}, {image(call)[0], 1, 1});
}

void global_max_pool(Call& call) {
  const int64_t channels = image(call)[0];
  const Value y = call.layer("global_max_pool", {&call.data(0)}, {}, {channels});
  call.give(call.reshaped(y, {channels, 1, 1}));
}

void mean_over(Call& call, std::vector<int64_t> axes) {
  const Shape row = image(call);
  for (int64_t& axis : axes) axis = axis < 0 ? axis + 4 : axis;
  std::ranges::sort(axes);
  if (axes != std::vector<int64_t>{2, 3}) throw Unsupported("means over other dimensions than rows and columns");
  const Value y = call.layer("adaptive_avg_pool", {&call.data(0)}, {{"size", {"1"}}}, {row[0], 1, 1});
  call.give(call.integer("keepdims", 1) != 0 ? y : call.reshaped(y, {row[0]}));
}
void reduce_mean_1(Call& call) { mean_over(call, call.list("axes")); }
void reduce_mean_18(Call& call) {
  mean_over(call, call.has(1) ? call.integers(1, "the dimensions") : std::vector<int64_t>());
}

}  // namespace

std::vector<OpRow> pooling_rows() {
  return {
      {"MaxPool", 1, max_pool},
      {"AveragePool", 7, average_pool},
      {"GlobalAveragePool", 1, global_average_pool},
      {"GlobalMaxPool", 1, global_max_pool},
      {"ReduceMean", 1, reduce_mean_1},
      {"ReduceMean", 18, reduce_mean_18},
  };
}

}  // namespace gpunn::interchange
