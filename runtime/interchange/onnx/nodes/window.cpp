#include "interchange/onnx/nodes/window.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace gpunn::interchange {

namespace {

// Planes, or channels, in front.
Value swapped(Call& call, const Value& x) {
  std::vector<int64_t> order(x.shape.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  return call.transposed(x, order);
}

}  // namespace

std::vector<std::string> Window::margins() const {
  std::vector<int64_t> sides;
  for (std::size_t i = 0; i < begins.size(); ++i) sides.insert(sides.end(), {begins[i], ends[i]});
  return texts(sides);
}

Shape Window::with_channels(int64_t channels) const {
  Shape shape{channels};
  shape.insert(shape.end(), output.begin(), output.end());
  return shape;
}

std::vector<int64_t> Window::with_planes(std::vector<int64_t> numbers, int64_t of_planes) const {
  if (!has_planes) return numbers;
  if (numbers.size() == 2 * (dimensions() - 1)) {
    numbers.insert(numbers.begin() + static_cast<std::ptrdiff_t>(dimensions()) - 1, of_planes);
  }
  numbers.insert(numbers.begin(), of_planes);
  return numbers;
}

Value Window::finished(Call& call, const Value& y) const { return has_planes ? swapped(call, y) : y; }

Window window_over_input(Call& call) {
  Window w;
  w.x = call.data(0);
  w.has_planes = call.place() != BatchPlace();
  if (w.has_planes) {
    if (call.place().dimension != 0 && !call.place().is_outside())
      throw Unsupported("takes the channels or the pixels of several rows of the batch");
    w.x = swapped(call, w.x);
  }
  w.row = row_of(w.x);
  if (w.row.size() < 2 || w.row.size() > 4) {
    throw Unsupported("takes " + to_string(w.x.shape) + "; layers take [N, C, L], [N, C, H, W] or [N, C, D, H, W]");
  }
  return w;
}

std::vector<int64_t> window_numbers(const Call& call, const Window& w, const char* name, std::size_t times,
                                    int64_t fallback, int64_t least) {
  constexpr int64_t kMost = 1 << 24;
  const std::size_t count = (w.dimensions() - (w.has_planes ? 1 : 0)) * times;
  std::vector<int64_t> found = call.list(name, std::vector<int64_t>(count, fallback));
  const bool fits = std::ranges::all_of(found, [&](int64_t one) { return one >= least && one < kMost; });
  if (found.size() != count || !fits) {
    throw Unsupported("its attribute " + std::string(name) + " must be " + std::to_string(count) +
                      " integers, none below " + std::to_string(least));
  }
  return w.with_planes(std::move(found), least);
}

void read_window(const Call& call, Window& w, const std::vector<int64_t>& kernel) {
  const bool given = call.has_attribute("kernel_shape") || kernel.empty();
  w.kernel = given ? window_numbers(call, w, "kernel_shape", 1, 0, 1) : kernel;
  if (!kernel.empty() && kernel != w.kernel) throw Unsupported("its kernel_shape is not that of its weights");
  w.stride = window_numbers(call, w, "strides", 1, 1, 1);
  w.dilation = window_numbers(call, w, "dilations", 1, 1, 1);
  std::vector<int64_t> pads = window_numbers(call, w, "pads", 2, 0, 0);
  const std::string mode = call.word("auto_pad", "NOTSET");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    throw Unsupported("its auto_pad " + mode + " is not known");
  }
  if (mode != "NOTSET") std::ranges::fill(pads, 0);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(w.dimensions());
  w.begins.assign(pads.begin(), middle);
  w.ends.assign(middle, pads.end());
}

Window window_of(Call& call) {
  Window w = window_over_input(call);
  slide(call, w, {});
  return w;
}

void slide(const Call& call, Window& w, const std::vector<int64_t>& kernel) {
  read_window(call, w, kernel);
  w.ceil = call.integer("ceil_mode", 0) != 0;
  const std::string mode = call.word("auto_pad", "NOTSET");
  for (std::size_t i = 0; i < w.dimensions(); ++i) {
    const int64_t size = w.row[i + 1];
    if (mode.starts_with("SAME")) {
      const int64_t wanted = (size + w.stride[i] - 1) / w.stride[i];
      const int64_t more = std::max<int64_t>(0, (wanted - 1) * w.stride[i] + w.reach(i) - size);
      w.begins[i] = mode == "SAME_UPPER" ? more / 2 : more - more / 2;
      w.ends[i] = more - w.begins[i];
    }
    const int64_t room = size + w.begins[i] + w.ends[i] - w.reach(i) + (w.ceil ? w.stride[i] - 1 : 0);
    if (room < 0) throw Unsupported("its window is larger than its input " + to_string(call.data(0).shape));
    int64_t count = room / w.stride[i] + 1;
    // A window that would begin behind the sample does not count.
    if (w.ceil && (count - 1) * w.stride[i] >= size + w.begins[i]) --count;
    w.output.push_back(count);
  }
}

}  // namespace gpunn::interchange
