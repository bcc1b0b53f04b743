#include "interchange/onnx/constants/windows.hpp"

#include <algorithm>
#include <string>

namespace gpunn::interchange::constants {

Shape space_of(const Shape& shape) {
  if (shape.size() < 3) throw Unsupported("takes " + gpunn::to_string(shape) + "; expected [N, C, ...]");
  return {shape.begin() + 2, shape.end()};
}

Shape window_list(const Call& call, const char* name, std::size_t count, int64_t fallback, int64_t least) {
  constexpr int64_t kMost = 1 << 24;
  Shape found = call.list(name, Shape(count, fallback));
  const bool fits = std::ranges::all_of(found, [&](int64_t one) { return one >= least && one < kMost; });
  if (found.size() != count || !fits) {
    throw Unsupported("its attribute " + std::string(name) + " must be " + std::to_string(count) +
                      " integers, none below " + std::to_string(least));
  }
  return found;
}

bool pads_to_same(const Call& call, bool& is_upper) {
  const std::string mode = call.word("auto_pad", "NOTSET");
  is_upper = mode == "SAME_UPPER";
  if (!is_upper && mode != "SAME_LOWER" && mode != "NOTSET" && mode != "VALID") {
    throw Unsupported("its auto_pad " + mode + " is not known");
  }
  return is_upper || mode == "SAME_LOWER";
}

Windows windows_in(Call& call, Shape space, const Shape& kernel) {
  Windows w;
  const std::size_t rank = space.size();
  w.space = std::move(space);
  const bool is_given = call.has_attribute("kernel_shape") || kernel.empty();
  w.kernel = is_given ? window_list(call, "kernel_shape", rank, 0, 1) : kernel;
  if (!kernel.empty() && kernel != w.kernel) throw Unsupported("its kernel_shape is not that of its weights");
  w.stride = window_list(call, "strides", rank, 1, 1);
  w.dilation = window_list(call, "dilations", rank, 1, 1);
  Shape pads = window_list(call, "pads", 2 * rank, 0, 0);
  if (call.word("auto_pad", "NOTSET") != "NOTSET") pads.assign(2 * rank, 0);
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  w.behind.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  const int64_t count = call.importer().take_room(w.kernel);
  Walk<1> walk(w.kernel, {Shape(rank, 0)});
  for (int64_t i = 0; i < count; ++i, walk.next()) w.taps.push_back(walk.at());
  return w;
}

Windows windows_over(Call& call, Shape space, const Shape& kernel) {
  Windows w = windows_in(call, std::move(space), kernel);
  bool is_upper = false;
  const bool is_same = pads_to_same(call, is_upper), rounds_up = call.integer("ceil_mode", 0) != 0;
  for (std::size_t d = 0; d < w.space.size(); ++d) {
    const int64_t size = w.space[d], stride = w.stride[d], reach = w.dilation[d] * (w.kernel[d] - 1) + 1;
    if (is_same) {
      const int64_t wanted = (size + stride - 1) / stride;
      const int64_t more = std::max<int64_t>(0, (wanted - 1) * stride + reach - size);
      w.before[d] = is_upper ? more / 2 : more - more / 2;
      w.behind[d] = more - w.before[d];
    }
    const int64_t room = size + w.before[d] + w.behind[d] - reach;
    if (room < 0) throw Unsupported("its window is larger than its input " + gpunn::to_string(w.space));
    int64_t count = room / stride + 1;
    // A window that would begin behind the data and their padding in front does not count.
    if (rounds_up && room % stride != 0 && count * stride < size + w.before[d]) ++count;
    w.output.push_back(count);
  }
  return w;
}

}  // namespace gpunn::interchange::constants
