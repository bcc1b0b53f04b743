#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

std::string check_conv2d(const LayerArguments& arguments) {
  const int64_t filters = arguments.integer("filters"), groups = arguments.integer("groups");
  if (filters % groups != 0) {
    return "filters (" + std::to_string(filters) + ") must be a multiple of groups (" + std::to_string(groups) + ")";
  }
  return {};
}

std::string check_conv2d_transpose(const LayerArguments& arguments) {
  const int64_t filters = arguments.integer("filters"), groups = arguments.integer("groups");
  if (filters % groups != 0) {
    return "filters (" + std::to_string(filters) + ") must be a multiple of groups (" + std::to_string(groups) + ")";
  }
  const auto more = arguments.pair("output_padding"), stride = arguments.pair("stride");
  for (std::size_t i = 0; i < 2; ++i) {
    if (more[i] >= stride[i]) {
      return "output_padding (" + std::to_string(more[i]) + ") must be below the stride (" + std::to_string(stride[i]) +
             ")";
    }
  }
  return {};
}

}  // namespace

std::vector<LayerType> convolution_layers() {
  using V = LayerValue;
  return {
      {"conv2d",
       "2-D convolution of [C, H, W].",
       1,
       {{"filters", V::integer, "", between(1, kMostChannels), {}, "Output channels."},
        {"kernel", V::pair, "", kWindow, {}, "Size of the window."},
        {"stride", V::pair, "1", kWindow, {}, "Step of the window."},
        {"padding",
         V::padding,
         "0",
         kMargin,
         {},
         "Zeros on each side; `same`: as many as keep the size at stride 1, the odd one below and on the right."},
        {"dilation", V::pair, "1", kWindow, {}, "Distance between neighbours in the window."},
        {"groups", V::integer, "1", between(1, kMostChannels), {}, "Parts that input and output are split into."},
        bias_key(),
        init_key(),
        activation_key(),
        int8_weight_key()},
       check_conv2d},
      {"conv2d_transpose",
       "Transposed 2-D convolution of [C, H, W], which makes images larger: conv2d's gradient by its input.",
       1,
       {{"filters", V::integer, "", between(1, kMostChannels), {}, "Output channels."},
        {"kernel", V::pair, "", kWindow, {}, "Size of the window."},
        {"stride", V::pair, "1", kWindow, {}, "Distance between the windows of neighbouring inputs."},
        {"padding", V::margins, "0", kMargin, {}, "Rows and columns that are cut off on each side."},
        {"output_padding",
         V::pair,
         "0",
         kMargin,
         {},
         "Rows added below and columns added on the right; less than the stride."},
        {"dilation", V::pair, "1", kWindow, {}, "Distance between neighbours in the window."},
        {"groups", V::integer, "1", between(1, kMostChannels), {}, "Parts that input and output are split into."},
        bias_key(),
        init_key(),
        activation_key()},
       check_conv2d_transpose},
  };
}

}  // namespace gpunn::config
