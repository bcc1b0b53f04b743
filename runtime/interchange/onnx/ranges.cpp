#include "interchange/onnx/ranges.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace gpunn::interchange {

namespace {

// From opset 10 on these are inputs.
std::vector<int64_t> slice_list(const Call& call, std::size_t input, const char* name) {
  if (call.count() > 1 || input > 2) return call.has(input) ? call.integers(input, name) : std::vector<int64_t>();
  return call.list(name);
}

SliceRange range_of(std::size_t axis, int64_t size, int64_t start, int64_t end, int64_t step) {
  if (step == 0 || step == std::numeric_limits<int64_t>::min())
    throw Unsupported("slices in steps of " + std::to_string(step));
  const auto place = [size](int64_t at) { return at < 0 ? at + size : at; };
  SliceRange range{.axis = axis, .start = 0, .count = 0, .step = step};
  if (step > 0) {
    range.start = std::clamp<int64_t>(place(start), 0, size);
    const int64_t last = std::clamp<int64_t>(place(end), 0, size);
    range.count = last > range.start ? (last - range.start - 1) / step + 1 : 0;
  } else {
    // A start in front of the first is the first: only an end can be in front of it.
    range.start = size == 0 ? -1 : std::clamp<int64_t>(place(start), 0, size - 1);
    const int64_t last = end < -size ? -1 : std::clamp<int64_t>(place(end), -1, size - 1);
    range.count = range.start > last ? (range.start - last - 1) / -step + 1 : 0;
  }
  return range;
}

}  // namespace

std::vector<SliceRange> slice_ranges(const Call& call, const Sizes& sizes) {
  const std::vector<int64_t> starts = slice_list(call, 1, "starts"), ends = slice_list(call, 2, "ends");
  std::vector<int64_t> axes = slice_list(call, 3, "axes"), steps = slice_list(call, 4, "steps");
  if (call.count() <= 1) axes = call.list("axes");
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    throw Unsupported("does not give each dimension a start, an end and a step");
  }
  std::vector<SliceRange> ranges;
  std::set<std::size_t> seen;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = call.dimension(axes[i], sizes.size());
    if (!seen.insert(axis).second) {
      throw Unsupported("slices dimension " + std::to_string(axes[i]) + " of " + to_string(sizes) + " twice");
    }
    const Size size = sizes[axis];
    if (size.of_batch) {
      if (starts[i] != 0 || ends[i] < std::numeric_limits<int32_t>::max() || steps[i] != 1) {
        throw Unsupported("takes a part of the batch");
      }
      continue;
    }
    const SliceRange range = range_of(axis, size.factor, starts[i], ends[i], steps[i]);
    if (range.count != size.factor || range.step != 1) ranges.push_back(range);
  }
  return ranges;
}

std::vector<int64_t> split_sizes(const Call& call, int64_t size, int64_t least) {
  std::vector<int64_t> parts = call.has(1) ? call.integers(1, "the parts") : call.list("split");
  const std::size_t outputs = call.node().outputs.size();
  if (parts.empty()) {
    const auto count = static_cast<int64_t>(outputs);
    if (call.integer("num_outputs", count) != count || count < 1) throw Unsupported("has other outputs than it says");
    constexpr int64_t kTakesRest = 18;
    if (call.opset() < kTakesRest && size % count != 0) {
      throw Unsupported("splits " + std::to_string(size) + " into " + std::to_string(count) + " equal parts");
    }
    // All as large as the first, but the last ones, which have what is left.
    const int64_t each = (size + count - 1) / count;
    for (int64_t i = 0; i < count; ++i) parts.push_back(std::clamp<int64_t>(size - i * each, 0, each));
  }
  int64_t sum = 0;
  bool sound = parts.size() == outputs;
  for (const int64_t part : parts) {
    sound = sound && part >= least && part <= size;
    if (sound) sum += part;
    sound = sound && sum <= size;
  }
  if (!sound || sum != size) throw Unsupported("its parts are not those of a dimension of " + std::to_string(size));
  return parts;
}

std::string pad_mode(const Call& call) {
  std::string mode = call.word("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "wrap" && mode != "reflect") throw Unsupported("pads by " + mode);
  return mode;
}

std::vector<int64_t> padded_places(const std::string& mode, int64_t size, int64_t before, int64_t behind) {
  const int64_t cut = std::max<int64_t>(-before, 0), left = size - cut - std::max<int64_t>(-behind, 0);
  const int64_t front = std::max<int64_t>(before, 0), count = left + front + std::max<int64_t>(behind, 0);
  if (left < 0) throw Unsupported("cuts more than a dimension of " + std::to_string(size) + " has");
  if (left == 0 && count > 0 && mode != "constant") throw Unsupported("pads a dimension of 0 by its own values");
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = i - front;
    const bool is_inside = at >= 0 && at < left;
    if (!is_inside && mode == "constant") {
      places.push_back(kBorder);
      continue;
    }
    if (mode == "edge") at = std::clamp<int64_t>(at, 0, left - 1);
    if (mode == "wrap") at = (at % left + left) % left;
    if (mode == "reflect") {
      const int64_t period = std::max<int64_t>(2 * (left - 1), 1);
      at = (at % period + period) % period;
      at = std::min(at, period - at);
      if (left == 1) at = 0;
    }
    places.push_back(cut + at);
  }
  return places;
}

}  // namespace gpunn::interchange
