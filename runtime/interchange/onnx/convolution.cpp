#include "interchange/onnx/window.hpp"

namespace gpunn::interchange {

namespace {

void convolution(Call& call) {
  const Constant& weights = call.floats(1, "the weights");
  const Shape row = call.sample(0);
  if (weights.shape.size() != 4)
    throw Unsupported("is no 2-D convolution; its weights are " + gpunn::to_string(weights.shape));
  const int64_t groups = call.integer("group", 1), filters = weights.shape[0];
  const WindowOf2d window = window_of(call, {weights.shape[2], weights.shape[3]});
  if (groups < 1 || filters < 1 || weights.shape[2] < 1 || weights.shape[3] < 1 || filters % groups != 0 ||
      row[0] % groups != 0 || weights.shape[1] != row[0] / groups) {
    throw Unsupported("its weights " + gpunn::to_string(weights.shape) + " in " + std::to_string(groups) +
                      " groups don't fit its input " + to_string(call.data(0).shape));
  }
  const Value y = call.layer("conv2d", {&call.data(0)},
                             {{"filters", {std::to_string(filters)}},
                              {"kernel", texts(window.kernel)},
                              {"stride", texts(window.stride)},
                              {"padding", window.margins()},
                              {"dilation", texts(window.dilation)},
                              {"groups", {std::to_string(groups)}},
                              {"bias", {text(call.has(2))}}},
                             {filters, window.output[0], window.output[1]});
  call.set_tensor(y, "weight", weights.shape, weights);
  if (call.has(2)) call.set_tensor(y, "bias", {filters}, call.floats(2, "the biases"));
  call.give(y);
}

}  // namespace

std::vector<OpRow> convolution_rows() { return {{"Conv", 1, convolution}}; }

}  // namespace gpunn::interchange
