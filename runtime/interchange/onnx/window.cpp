#include "interchange/onnx/window.hpp"

#include <algorithm>

namespace gpunn::interchange {

Value WindowOf2d::finished(Call& call, const Value& y) const {
  return is_1d ? call.reshaped(y, {y.shape[1].factor, y.shape[3].factor}) : y;
}

WindowOf2d image_of(Call& call) {
  WindowOf2d w;
  w.image = call.sample(0);
  w.is_1d = w.image.size() == 2;
  if (w.is_1d) w.image.insert(w.image.begin() + 1, 1);
  if (w.image.size() != 3) {
    throw Unsupported("takes " + to_string(call.data(0).shape) + "; layers take [N, C, H, W] or [N, C, L]");
  }
  w.x = call.reshaped(call.data(0), w.image);
  return w;
}

std::vector<int64_t> window_numbers(const Call& call, const WindowOf2d& w, const char* name, std::size_t times,
                                    int64_t fallback, int64_t least) {
  constexpr int64_t kMost = 1 << 24;
  const std::size_t count = (w.is_1d ? 1 : 2) * times;
  std::vector<int64_t> found = call.list(name, std::vector<int64_t>(count, fallback));
  const bool fits = std::ranges::all_of(found, [&](int64_t one) { return one >= least && one < kMost; });
  if (found.size() != count || !fits) {
    throw Unsupported("its attribute " + std::string(name) + " must be " + std::to_string(count) +
                      " integers, none below " + std::to_string(least));
  }
  if (!w.is_1d) return found;
  std::vector<int64_t> result;
  for (const int64_t one : found) {
    result.push_back(least);  // a kernel, step or gap of 1, no padding
    result.push_back(one);
  }
  return result;
}

WindowOf2d window_of(Call& call, const std::vector<int64_t>& kernel) {
  WindowOf2d w = image_of(call);
  const bool given = call.has_attribute("kernel_shape") || kernel.empty();
  w.kernel = given ? window_numbers(call, w, "kernel_shape", 1, 0, 1) : kernel;
  if (!kernel.empty() && kernel != w.kernel) throw Unsupported("its kernel_shape is not that of its weights");
  w.stride = window_numbers(call, w, "strides", 1, 1, 1);
  w.dilation = window_numbers(call, w, "dilations", 1, 1, 1);
  w.pads = window_numbers(call, w, "pads", 2, 0, 0);
  w.ceil = call.integer("ceil_mode", 0) != 0;
  const std::string mode = call.word("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID") throw Unsupported("its auto_pad " + mode + " is not known");
  if (mode == "VALID") w.pads = {0, 0, 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t size = w.image[i + 1], reach = w.dilation[i] * (w.kernel[i] - 1) + 1;
    if (same) {
      const int64_t wanted = (size + w.stride[i] - 1) / w.stride[i];
      const int64_t more = std::max<int64_t>(0, (wanted - 1) * w.stride[i] + reach - size);
      w.pads[i] = mode == "SAME_UPPER" ? more / 2 : more - more / 2;
      w.pads[i + 2] = more - w.pads[i];
    }
    const int64_t room = size + w.pads[i] + w.pads[i + 2] - reach;
    if (room < 0) throw Unsupported("its window is larger than its input " + to_string(call.data(0).shape));
    int64_t count = room / w.stride[i] + 1;
    // A window that would begin behind the image does not count.
    if (w.ceil && room % w.stride[i] != 0 && count * w.stride[i] < size + w.pads[i]) ++count;
    w.output.push_back(count);
  }
  return w;
}

}  // namespace gpunn::interchange
