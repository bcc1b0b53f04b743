#include <algorithm>

#include "interchange/onnx/window.hpp"

namespace gpunn::interchange {

namespace {

// As the windows of layers are.
void require_narrow(const WindowOf2d& w) {
  if (w.dilation != std::vector<int64_t>{1, 1}) throw Unsupported("its window has gaps, which layers don't have");
  for (std::size_t i = 0; i < 4; ++i) {
    if (w.pads[i] >= w.kernel[i % 2]) throw Unsupported("its padding is as wide as its window");
  }
}

void max_pool(Call& call) {
  const WindowOf2d w = window_of(call, {});
  require_narrow(w);
  call.require_first_output_alone("gives the places of the maxima, which layers don't");
  const Value y = call.layer("max_pool", {&w.x},
                             {{"window", texts(w.kernel)},
                              {"stride", texts(w.stride)},
                              {"padding", w.margins()},
                              {"ceil_mode", {text(w.ceil)}}},
                             {w.image[0], w.output[0], w.output[1]});
  call.give(w.finished(call, y));
}

// Means of neighbours along the first of three dimensions alone, as of channels for PyTorch's local response norm.
bool pool_along_first(Call& call) {
  const Shape row = call.sample(0);
  const std::vector<int64_t> kernel = call.list("kernel_shape"), ones(3, 1);
  const std::vector<int64_t> pads = call.list("pads", std::vector<int64_t>(6, 0));
  if (row.size() != 4 || kernel.size() != 3 || kernel[1] != 1 || kernel[2] != 1 || kernel[0] < 1 ||
      kernel[0] > row[1] || call.list("strides", ones) != ones || call.list("dilations", ones) != ones ||
      pads != std::vector<int64_t>(6, 0) || call.word("auto_pad", "NOTSET") != "NOTSET") {
    return false;
  }
  const Value image = call.reshaped(call.data(0), {row[0], row[1], row[2] * row[3]});
  const int64_t count = row[1] - kernel[0] + 1;
  const Value y = call.layer("avg_pool", {&image}, {{"window", texts({kernel[0], 1})}, {"stride", {"1"}}},
                             {row[0], count, row[2] * row[3]});
  call.give(call.reshaped(y, {row[0], count, row[2], row[3]}));
  return true;
}

void average_pool(Call& call) {
  if (pool_along_first(call)) return;
  const WindowOf2d w = window_of(call, {});
  require_narrow(w);
  const Value y = call.layer("avg_pool", {&w.x},
                             {{"window", texts(w.kernel)},
                              {"stride", texts(w.stride)},
                              {"padding", w.margins()},
                              {"count_padding", {text(call.integer("count_include_pad", 0) != 0)}},
                              {"ceil_mode", {text(w.ceil)}}},
                             {w.image[0], w.output[0], w.output[1]});
  call.give(w.finished(call, y));
}

// A node of fuse_adaptive_pooling()'s, which a file may also have itself.
void adaptive_average_pool(Call& call) {
  constexpr int64_t kMost = 1 << 20;
  const Shape images = call.sample(0);
  const int64_t rows = call.integer("rows", 0), columns = call.integer("columns", 0);
  const std::vector<int64_t> size = {call.integer("output_rows", 0), call.integer("output_columns", 0)};
  if (images.size() != 3 || images[1] != rows || images[2] != columns) {
    throw Unsupported("pools images of " + to_string(call.data(0).shape) + ", but was exported for " +
                      std::to_string(rows) + " rows and " + std::to_string(columns) + " columns");
  }
  if (std::ranges::any_of(size, [&](int64_t n) { return n < 1 || n > kMost; })) {
    throw Unsupported("gives " + std::to_string(size[0]) + " rows and " + std::to_string(size[1]) +
                      " columns; expected at least 1");
  }
  call.give_layer("adaptive_avg_pool", {{"size", texts(size)}}, {images[0], size[0], size[1]});
}

}  // namespace

const OpRow& fused_adaptive_pooling() {
  static constexpr OpRow row = {"AdaptiveAveragePool", 1, adaptive_average_pool, BatchIn::front};
  return row;
}

std::vector<OpRow> pooling_rows() {
  return {{"MaxPool", 1, max_pool, BatchIn::front}, {"AveragePool", 1, average_pool, BatchIn::front}};
}

}  // namespace gpunn::interchange
