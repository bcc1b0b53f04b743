#include <algorithm>

#include "interchange/onnx/window.hpp"

namespace gpunn::interchange {

namespace {

// Layers pad by less than the window: wider borders are a layer of their own.
void require_narrow(const WindowOf2d& w) {
  if (w.dilation != std::vector<int64_t>{1, 1}) throw Unsupported("its window has gaps, which layers don't have");
  for (std::size_t i = 0; i < 4; ++i) {
    if (w.pads[i] >= w.kernel[i % 2]) throw Unsupported("its padding is as wide as its window");
  }
}

void max_pool(Call& call) {
  const WindowOf2d w = window_of(call, {});
  require_narrow(w);
  if (call.node().outputs.size() > 1 && !call.node().outputs[1].empty()) {
    throw Unsupported("gives the places of the maxima, which layers don't");
  }
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

// Means, sums or maxima over dimensions of a row.
Value reduced(Call& call, const char* function, std::vector<int64_t> axes, bool keep) {
  const Shape row = call.sample(0);
  const auto rank = static_cast<int64_t>(row.size()) + 1;
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 1 || axis >= rank) throw Unsupported("reduces the batch, or a dimension that is not there");
    --axis;
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) throw Unsupported("names a dimension twice");
  Shape kept = row, left;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!std::ranges::binary_search(axes, static_cast<int64_t>(i))) {
      left.push_back(row[i]);
    } else {
      kept[i] = 1;
    }
  }
  const bool is_mean = std::string_view(function) == "mean";
  if (is_mean && row.size() == 3 && axes == std::vector<int64_t>{1, 2}) {
    const Value y = call.layer("adaptive_avg_pool", {&call.data(0)}, {{"size", {"1"}}}, {row[0], 1, 1});
    return keep ? y : call.reshaped(y, {row[0]});
  }
  if (left.empty() && !keep) throw Unsupported("leaves one number a sample without a dimension");
  return call.layer("reduce", {&call.data(0)},
                    {{"function", {function}}, {"dimensions", texts(axes)}, {"keep", {text(keep)}}},
                    keep ? kept : left);
}

void reduce_over(Call& call, const char* function, std::vector<int64_t> axes) {
  if (axes.empty()) {
    if (call.integer("noop_with_empty_axes", 0) != 0) return call.give(call.data(0));
    throw Unsupported("reduces the batch");
  }
  call.give(reduced(call, function, std::move(axes), call.integer("keepdims", 1) != 0));
}

template <auto& function>
void reduce_by_attribute(Call& call) {
  reduce_over(call, function, call.list("axes"));
}
template <auto& function>
void reduce_by_input(Call& call) {
  reduce_over(call, function, call.has(1) ? call.integers(1, "the dimensions") : std::vector<int64_t>());
}
constexpr char kMean[] = "mean", kSum[] = "sum", kMax[] = "max";

// Over all dimensions behind the channels'.
template <auto& function>
void global_pool(Call& call) {
  const std::size_t rank = call.sample(0).size();
  if (rank < 2) throw Unsupported("takes " + to_string(call.data(0).shape) + "; expected [N, C, ...]");
  std::vector<int64_t> axes;
  for (std::size_t i = 2; i <= rank; ++i) axes.push_back(static_cast<int64_t>(i));
  call.give(reduced(call, function, axes, true));
}

}  // namespace

std::vector<OpRow> pooling_rows() {
  return {
      {"MaxPool", 1, max_pool},
      {"AveragePool", 1, average_pool},
      {"GlobalAveragePool", 1, global_pool<kMean>},
      {"GlobalMaxPool", 1, global_pool<kMax>},
      {"ReduceMean", 1, reduce_by_attribute<kMean>},
      {"ReduceMean", 18, reduce_by_input<kMean>},
      {"ReduceSum", 1, reduce_by_attribute<kSum>},
      {"ReduceSum", 13, reduce_by_input<kSum>},
      {"ReduceMax", 1, reduce_by_attribute<kMax>},
      {"ReduceMax", 18, reduce_by_input<kMax>},
  };
}

}  // namespace gpunn::interchange
