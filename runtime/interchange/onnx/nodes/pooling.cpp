#include <algorithm>
#include <utility>

#include "interchange/onnx/nodes/window.hpp"

namespace gpunn::interchange {

namespace {

Keys keys_of(const Window& w) {
  return {{"window", texts(w.kernel)},
          {"stride", texts(w.stride)},
          {"padding", w.margins()},
          {"dilation", texts(w.dilation)},
          {"ceil_mode", {text(w.ceil)}}};
}

void max_pool(Call& call) {
  const Window w = window_of(call);
  call.require_first_output_alone("gives the places of the maxima, which layers don't");
  call.give(w.finished(call, call.layer("max_pool", {&w.x}, keys_of(w), w.with_channels(w.row[0]))));
}

Value means(Call& call, const Window& w, bool count_padding) {
  Keys keys = keys_of(w);
  keys.push_back({"count_padding", {text(count_padding)}});
  return call.layer("avg_pool", {&w.x}, keys, w.with_channels(w.row[0]));
}

void average_pool(Call& call) {
  const Window w = window_of(call);
  const bool count_padding = call.integer("count_include_pad", 0) != 0;
  for (std::size_t i = 0; i < w.dimensions(); ++i) {
    if (!count_padding && std::max(w.begins[i], w.ends[i]) >= w.reach(i)) {
      throw Unsupported("its padding, which it does not count, is as wide as its window");
    }
  }
  call.give(w.finished(call, means(call, w, count_padding)));
}

// The root of the sums of powers: sums are means times the size of the window, all of which counts.
void give_norms(Call& call, Window w) {
  const int64_t p = call.integer("p", 2);
  if (p < 1 || p > 1000) throw Unsupported("its p is " + std::to_string(p) + ", expected 1 to 1000");
  double size = 1;
  for (std::size_t i = 0; i < w.dimensions(); ++i) {
    size *= static_cast<double>(w.kernel[i]);
    const int64_t room = w.row[i + 1] + w.begins[i] + w.ends[i];
    w.ends[i] += std::max<int64_t>(0, (w.output[i] - 1) * w.stride[i] + w.reach(i) - room);
  }
  w.ceil = false;
  const auto power = [&](const Value& x, const std::string& exponent) {
    return call.layer("power", {&x}, {{"exponent", {exponent}}}, row_of(x));
  };
  if (p % 2 != 0) w.x = call.layer("abs", {&w.x}, {}, row_of(w.x));
  if (p != 1) w.x = power(w.x, std::to_string(p));
  const Value sums = call.scaled(means(call, w, true), size);
  call.give(w.finished(call, p == 1 ? sums : power(sums, text(1 / static_cast<double>(p)))));
}

void lp_pool(Call& call) { give_norms(call, window_of(call)); }

void global_lp_pool(Call& call) {
  Window w = window_over_input(call);
  const std::vector<int64_t> ones(w.dimensions(), 1), zeros(w.dimensions(), 0);
  w.kernel.assign(w.row.begin() + 1, w.row.end());
  w.stride = w.dilation = w.output = ones;
  w.begins = w.ends = zeros;
  if (w.has_planes) w.output[0] = std::exchange(w.kernel[0], 1);
  give_norms(call, std::move(w));
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
  return {{"MaxPool", 1, max_pool, BatchIn::frames},
          {"AveragePool", 1, average_pool, BatchIn::frames},
          {"LpPool", 2, lp_pool, BatchIn::frames},
          {"GlobalLpPool", 2, global_lp_pool, BatchIn::frames}};
}

}  // namespace gpunn::interchange
