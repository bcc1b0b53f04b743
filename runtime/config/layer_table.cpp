#include "config/layer_table.hpp"

#include <algorithm>

namespace gpunn::config {

namespace {

constexpr double kMostChannels = 65536;
constexpr double kMostUnits = 1 << 24;
constexpr double kLargestWindow = 4096;

const LayerKey kActivation = {"activation",
                              LayerValue::choice,
                              "none",
                              {},
                              {"none", "relu", "sigmoid", "tanh", "gelu", "silu"},
                              "Applied to the layer's sum."};
const LayerKey kBias = {
    "bias", LayerValue::boolean, "true", {}, {}, "Whether a number is added to each output channel."};

std::string check_conv2d(const LayerArguments& arguments) {
  const int64_t filters = arguments.integer("filters"), groups = arguments.integer("groups");
  if (filters % groups != 0) {
    return "filters (" + std::to_string(filters) + ") must be a multiple of groups (" + std::to_string(groups) + ")";
  }
  const auto kernel = arguments.pair("kernel"), dilation = arguments.pair("dilation");
  for (std::size_t i = 0; i < 2; ++i) {
    if (arguments.is_same("padding") && dilation[i] * (kernel[i] - 1) % 2 != 0) {
      return "padding: same needs an odd kernel, found " + std::to_string(kernel[i]) + "; give the padding as a number";
    }
  }
  return {};
}

std::string check_max_pool(const LayerArguments& arguments) {
  const auto window = arguments.pair("window"), padding = arguments.pair("padding");
  for (std::size_t i = 0; i < 2; ++i) {
    if (padding[i] * 2 > window[i]) {
      return "padding (" + std::to_string(padding[i]) + ") must be at most half the window (" +
             std::to_string(window[i]) + ")";
    }
  }
  return {};
}

std::vector<LayerType> make_table() {
  using V = LayerValue;
  const Range window = between(1, kLargestWindow);
  const Range margin = between(0, kLargestWindow);
  return {
      {"conv2d",
       "2-D convolution of [C, H, W].",
       1,
       {{"filters", V::integer, "", between(1, kMostChannels), {}, "Output channels."},
        {"kernel", V::pair, "", window, {}, "Size of the window."},
        {"stride", V::pair, "1", window, {}, "Step of the window."},
        {"padding", V::padding, "0", margin, {}, "Zeros on each side; `same`: as many as keep the size at stride 1."},
        {"dilation", V::pair, "1", window, {}, "Distance between neighbours in the window."},
        {"groups", V::integer, "1", between(1, kMostChannels), {}, "Parts that input and output are split into."},
        kBias,
        kActivation},
       check_conv2d},
      {"linear",
       "Weighted sums of all the inputs, of [features].",
       1,
       {{"units", V::integer, "", between(1, kMostUnits), {}, "Outputs."}, kBias, kActivation}},
      {"relu", "max(x, 0).", 1, {}},
      {"leaky_relu",
       "x where it is above 0, else slope * x.",
       1,
       {{"slope", V::number, "0.01", between(-1000, 1000), {}, "Factor of what is not above 0."}}},
      {"sigmoid", "1 / (1 + exp(-x)).", 1, {}},
      {"tanh", "The hyperbolic tangent.", 1, {}},
      {"gelu",
       "x times the share of a standard normal distribution below x.",
       1,
       {{"approximate", V::choice, "none", {}, {"none", "tanh"}, "`tanh`: by a hyperbolic tangent instead of erf."}}},
      {"silu", "x * sigmoid(x), also called swish.", 1, {}},
      {"max_pool",
       "The largest of each window of [C, H, W].",
       1,
       {{"window", V::pair, "", window, {}, "Size of the window."},
        {"stride", V::pair, "window", window, {}, "Step of the window."},
        {"padding", V::pair, "0", margin, {}, "Border on each side that never wins; at most half the window."}},
       check_max_pool},
      {"flatten", "All dimensions as one, in front of `linear`.", 1, {}},
      {"softmax", "Probabilities of [classes]. Not in front of the loss `cross_entropy`, which has its own.", 1, {}},
      {"dropout",
       "In training, each value becomes 0 with probability p, the others grow to keep the mean.",
       1,
       {{"p", V::number, "0.5", from_to_below(0, 1), {}, "The share that is dropped."}}},
      {"add", "The sum of two layers of equal shape: `from: [a, b]`.", 2, {}},
  };
}

}  // namespace

const LayerKey* LayerType::find(std::string_view key) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const LayerKey& row) { return row.name == key; });
  return found == keys.end() ? nullptr : &*found;
}

const std::vector<LayerType>& layer_table() {
  static const std::vector<LayerType> table = make_table();
  return table;
}

const LayerType* find_layer_type(std::string_view name) {
  for (const LayerType& type : layer_table()) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::vector<std::string> layer_type_names() {
  std::vector<std::string> names;
  for (const LayerType& type : layer_table()) names.push_back(type.name);
  return names;
}

}  // namespace gpunn::config
