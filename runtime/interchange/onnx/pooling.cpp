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

void average_pool(Call& call) {
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

}  // namespace

std::vector<OpRow> pooling_rows() { return {{"MaxPool", 1, max_pool}, {"AveragePool", 1, average_pool}}; }

}  // namespace gpunn::interchange
