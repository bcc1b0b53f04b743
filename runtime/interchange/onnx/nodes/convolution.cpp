#include <algorithm>

#include "interchange/onnx/nodes/window.hpp"

namespace gpunn::interchange {

namespace {

// Weights [A, B, ...] of as many dimensions as the node's input has.
const Constant& weights_of(const Call& call, const Window& w) {
  const Constant& weights = call.floats(1, "the weights");
  const bool fits = weights.shape.size() == w.dimensions() + (w.has_planes ? 1 : 2) &&
                    std::ranges::all_of(weights.shape, [](int64_t size) { return size >= 1; });
  if (!fits) {
    throw Unsupported("its weights " + gpunn::to_string(weights.shape) + " don't fit its input " +
                      to_string(call.data(0).shape));
  }
  return weights;
}

std::vector<int64_t> kernel_of(const Window& w, const Constant& weights) {
  return w.with_planes({weights.shape.begin() + 2, weights.shape.end()}, 1);
}

[[noreturn]] void refuse_weights(const Call& call, const Constant& weights, int64_t groups) {
  throw Unsupported("its weights " + gpunn::to_string(weights.shape) + " in " + std::to_string(groups) +
                    " groups don't fit its input " + to_string(call.data(0).shape));
}

// The layer of a node, whose keys begin with those that each convolution has.
void give_convolution(Call& call, const Window& w, const Constant& weights, int64_t filters, int64_t groups,
                      const std::string& suffix, Keys more) {
  Keys keys = {{"filters", {std::to_string(filters)}},
               {"kernel", texts(w.kernel)},
               {"stride", texts(w.stride)},
               {"padding", w.margins()},
               {"dilation", texts(w.dilation)},
               {"groups", {std::to_string(groups)}},
               {"bias", {text(call.has(2))}}};
  keys.insert(keys.end(), more.begin(), more.end());
  const Value y =
      call.layer("conv" + std::to_string(w.dimensions()) + "d" + suffix, {&w.x}, keys, w.with_channels(filters));
  Shape shape = {weights.shape[0], weights.shape[1]};
  shape.insert(shape.end(), w.kernel.begin(), w.kernel.end());
  call.set_tensor(y, "weight", shape, weights);
  if (call.has(2)) call.set_tensor(y, "bias", {filters}, call.floats(2, "the biases"));
  call.give(w.finished(call, y));
}

void convolution(Call& call) {
  Window w = window_over_input(call);
  const Constant& weights = weights_of(call, w);
  const int64_t groups = call.integer("group", 1), filters = weights.shape[0];
  slide(call, w, kernel_of(w, weights));
  if (groups < 1 || filters % groups != 0 || w.row[0] % groups != 0 || weights.shape[1] != w.row[0] / groups) {
    refuse_weights(call, weights, groups);
  }
  give_convolution(call, w, weights, filters, groups, "", {});
}

// The padding and what is appended, from what they leave of the whole or from the size that is wanted.
void size_transposed(const Call& call, Window& w, std::vector<int64_t>& more) {
  const std::string mode = call.word("auto_pad", "NOTSET");
  const bool same = mode.starts_with("SAME");
  std::vector<int64_t> wanted;
  if (call.has_attribute("output_shape")) {
    wanted = call.list("output_shape");
    const auto count = static_cast<std::ptrdiff_t>(w.dimensions()) - (w.has_planes ? 1 : 0);
    if (std::ssize(wanted) > count) wanted.erase(wanted.begin(), wanted.end() - count);
    if (std::ssize(wanted) != count) {
      throw Unsupported("its output_shape must be " + std::to_string(count) + " integers");
    }
    wanted = w.with_planes(std::move(wanted), w.row[1]);
  } else if (same) {
    for (std::size_t i = 0; i < w.dimensions(); ++i) wanted.push_back(w.row[i + 1] * w.stride[i]);
  }
  for (std::size_t i = 0; i < w.dimensions(); ++i) {
    const int64_t given = more[i], whole = (w.row[i + 1] - 1) * w.stride[i] + w.reach(i) + given;
    if (!wanted.empty()) {
      const int64_t all = std::max<int64_t>(0, whole - wanted[i]);
      w.begins[i] = mode == "SAME_UPPER" ? all / 2 : all - all / 2;
      w.ends[i] = all - w.begins[i];
      // Values are appended for a size that the file states, not for one that follows from its auto_pad.
      if (wanted[i] > whole && !same) more[i] += wanted[i] - whole;
    }
    w.output.push_back(whole - w.begins[i] - w.ends[i] + more[i] - given);
    if (w.output.back() < 1) throw Unsupported("its padding leaves nothing");
    if (more[i] >= w.stride[i]) throw Unsupported("appends a step or more to its output");
  }
}

void transposed_convolution(Call& call) {
  Window w = window_over_input(call);
  const Constant& weights = weights_of(call, w);
  const int64_t groups = call.integer("group", 1);
  read_window(call, w, kernel_of(w, weights));
  std::vector<int64_t> more = window_numbers(call, w, "output_padding", 1, 0, 0);
  if (groups < 1 || weights.shape[0] != w.row[0] || weights.shape[0] % groups != 0) {
    refuse_weights(call, weights, groups);
  }
  size_transposed(call, w, more);
  give_convolution(call, w, weights, weights.shape[1] * groups, groups, "_transpose",
                   {{"output_padding", texts(more)}});
}

}  // namespace

std::vector<OpRow> convolution_rows() {
  return {{"Conv", 1, convolution, BatchIn::frames}, {"ConvTranspose", 1, transposed_convolution, BatchIn::frames}};
}

}  // namespace gpunn::interchange
