#include "interchange/onnx/window.hpp"

#include <algorithm>

namespace gpunn::interchange {

namespace {

std::vector<int64_t> numbers(const Call& call, const char* name, std::size_t count, int64_t fallback, int64_t least) {
  std::vector<int64_t> found = call.list(name, std::vector<int64_t>(count, fallback));
  const bool fits = std::ranges::all_of(found, [&](int64_t one) { return one >= least && one < (1 << 24); });
  if (found.size() != count || !fits) {
    throw Unsupported("its attribute " + std::string(name) + " must be " + std::to_string(count) +
                      " integers, none below " + std::to_string(least));
  }
  return found;
}

}  // namespace

WindowOf2d window_of(const Call& call, std::vector<int64_t> kernel) {
  const Shape row = call.sample(0);
  if (row.size() != 3) throw Unsupported("takes " + to_string(call.data(0).shape) + "; layers take [N, C, H, W]");
  WindowOf2d w;
  w.kernel = kernel.empty() ? numbers(call, "kernel_shape", 2, 0, 1) : std::move(kernel);
  if (call.list("kernel_shape", w.kernel) != w.kernel) throw Unsupported("its kernel_shape is not that of its weights");
  w.stride = numbers(call, "strides", 2, 1, 1);
  w.dilation = numbers(call, "dilations", 2, 1, 1);
  w.pads = numbers(call, "pads", 4, 0, 0);
  w.ceil = call.integer("ceil_mode", 0) != 0;
  const std::string mode = call.word("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID") throw Unsupported("its auto_pad " + mode + " is not known");
  if (mode == "VALID") w.pads = {0, 0, 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t size = row[i + 1], reach = w.dilation[i] * (w.kernel[i] - 1) + 1;
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
