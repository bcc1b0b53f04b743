#include <algorithm>

#include "interchange/onnx/window.hpp"

namespace gpunn::interchange {

namespace {

// [A, B, rows, columns] of weights whose last dimension is a line's.
Shape filter_shape(const Constant& weights) {
  Shape shape = weights.shape;
  if (shape.size() == 3) shape.insert(shape.begin() + 2, 1);
  if (shape.size() != 4 || !std::ranges::all_of(shape, [](int64_t size) { return size >= 1; })) {
    throw Unsupported("is no convolution of images or lines; its weights are " + gpunn::to_string(weights.shape));
  }
  return shape;
}

[[noreturn]] void refuse_weights(const Call& call, const Constant& weights, int64_t groups) {
  throw Unsupported("its weights " + gpunn::to_string(weights.shape) + " in " + std::to_string(groups) +
                    " groups don't fit its input " + to_string(call.data(0).shape));
}

void convolution(Call& call) {
  const Constant& weights = call.floats(1, "the weights");
  const Shape filter = filter_shape(weights);
  const int64_t groups = call.integer("group", 1), filters = filter[0];
  const WindowOf2d window = window_of(call, {filter[2], filter[3]});
  if (groups < 1 || filters % groups != 0 || window.image[0] % groups != 0 || filter[1] != window.image[0] / groups) {
    refuse_weights(call, weights, groups);
  }
  const Value y = call.layer("conv2d", {&window.x},
                             {{"filters", {std::to_string(filters)}},
                              {"kernel", texts(window.kernel)},
                              {"stride", texts(window.stride)},
                              {"padding", window.margins()},
                              {"dilation", texts(window.dilation)},
                              {"groups", {std::to_string(groups)}},
                              {"bias", {text(call.has(2))}}},
                             {filters, window.output[0], window.output[1]});
  call.set_tensor(y, "weight", filter, weights);
  if (call.has(2)) call.set_tensor(y, "bias", {filters}, call.floats(2, "the biases"));
  call.give(window.finished(call, y));
}

// The padding and what is appended, from what they leave of the whole or from the size that is wanted.
void size_transposed(const Call& call, WindowOf2d& w, std::vector<int64_t>& more) {
  const std::string mode = call.word("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID") throw Unsupported("its auto_pad " + mode + " is not known");
  if (mode == "VALID") w.pads = {0, 0, 0, 0};
  std::vector<int64_t> wanted;
  if (call.has_attribute("output_shape")) {
    wanted = call.list("output_shape");
    if (w.is_1d && wanted.size() == 1) wanted.insert(wanted.begin(), 1);
    if (wanted.size() > 2) wanted.erase(wanted.begin(), wanted.end() - 2);
    if (wanted.size() != 2) throw Unsupported("its output_shape is not that of an image");
  } else if (same) {
    wanted = {w.image[1] * w.stride[0], w.image[2] * w.stride[1]};
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t whole = (w.image[i + 1] - 1) * w.stride[i] + w.dilation[i] * (w.kernel[i] - 1) + 1 + more[i];
    if (!wanted.empty()) {
      const int64_t all = std::max<int64_t>(0, whole - wanted[i]);
      w.pads[i] = mode == "SAME_UPPER" ? all / 2 : all - all / 2;
      w.pads[i + 2] = all - w.pads[i];
      if (wanted[i] > whole) more[i] += wanted[i] - whole;
    }
    w.output.push_back(wanted.empty() ? whole - w.pads[i] - w.pads[i + 2] : wanted[i]);
    if (w.output.back() < 1) throw Unsupported("its padding leaves nothing");
    if (more[i] >= std::max(w.stride[i], w.dilation[i])) throw Unsupported("appends more than a step to its output");
  }
}

void transposed_convolution(Call& call) {
  const Constant& weights = call.floats(1, "the weights");
  const Shape filter = filter_shape(weights);
  const int64_t groups = call.integer("group", 1);
  WindowOf2d w = image_of(call);
  w.kernel = {filter[2], filter[3]};
  if (call.has_attribute("kernel_shape") && window_numbers(call, w, "kernel_shape", 1, 0, 1) != w.kernel) {
    throw Unsupported("its kernel_shape is not that of its weights");
  }
  w.stride = window_numbers(call, w, "strides", 1, 1, 1);
  w.dilation = window_numbers(call, w, "dilations", 1, 1, 1);
  w.pads = window_numbers(call, w, "pads", 2, 0, 0);
  std::vector<int64_t> more = window_numbers(call, w, "output_padding", 1, 0, 0);
  if (groups < 1 || filter[0] != w.image[0] || filter[0] % groups != 0) refuse_weights(call, weights, groups);
  size_transposed(call, w, more);
  const int64_t filters = filter[1] * groups;
  const Value y = call.layer("conv2d_transpose", {&w.x},
                             {{"filters", {std::to_string(filters)}},
                              {"kernel", texts(w.kernel)},
                              {"stride", texts(w.stride)},
                              {"padding", w.margins()},
                              {"output_padding", texts(more)},
                              {"dilation", texts(w.dilation)},
                              {"groups", {std::to_string(groups)}},
                              {"bias", {text(call.has(2))}}},
                             {filters, w.output[0], w.output[1]});
  call.set_tensor(y, "weight", filter, weights);
  if (call.has(2)) call.set_tensor(y, "bias", {filters}, call.floats(2, "the biases"));
  call.give(w.finished(call, y));
}

}  // namespace

std::vector<OpRow> convolution_rows() {
  return {{"Conv", 1, convolution, BatchIn::front}, {"ConvTranspose", 1, transposed_convolution, BatchIn::front}};
}

}  // namespace gpunn::interchange
