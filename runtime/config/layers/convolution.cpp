#include <array>

#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

using V = LayerValue;

std::string check_groups(const LayerArguments& arguments) {
  const int64_t filters = arguments.integer("filters"), groups = arguments.integer("groups");
  if (filters % groups == 0) return {};
  return "filters (" + std::to_string(filters) + ") must be a multiple of groups (" + std::to_string(groups) + ")";
}

template <std::size_t dimensions>
std::string check_transposed(const LayerArguments& arguments) {
  if (std::string reason = check_groups(arguments); !reason.empty()) return reason;
  const auto more = arguments.sizes("output_padding", dimensions), stride = arguments.sizes("stride", dimensions);
  for (std::size_t i = 0; i < dimensions; ++i) {
    if (more[i] >= stride[i]) {
      return "output_padding (" + std::to_string(more[i]) + ") must be below the stride (" + std::to_string(stride[i]) +
             ")";
    }
  }
  return {};
}

constexpr std::array<const char*, kMostSpace> kSamples = {"[C, L]", "[C, H, W]", "[C, D, H, W]"};

LayerKey of_dimensions(std::size_t dimensions, LayerKey key) {
  key.dimensions = dimensions;
  return key;
}

std::vector<LayerKey> last_keys() {
  return {{"groups", V::integer, "1", between(1, kMostChannels), {}, "Parts that input and output are split into."},
          bias_key(),
          init_key(),
          activation_key()};
}

LayerType convolution(std::size_t n) {
  const std::string number = std::to_string(n);
  std::vector<LayerKey> keys = {
      {"filters", V::integer, "", between(1, kMostChannels), {}, "Output channels."},
      of_dimensions(n, {"kernel", V::sizes, "", kWindow, {}, "Size of the window."}),
      of_dimensions(n, {"stride", V::sizes, "1", kWindow, {}, "Step of the window."}),
      of_dimensions(n, {"padding",
                        V::padding,
                        "0",
                        kMargin,
                        {},
                        std::string("Zeros on each side; `same`: as many as keep the size at stride 1, the odd one ") +
                            (n == 2 ? "below and on the right." : "at the end.")}),
      of_dimensions(n, {"dilation", V::sizes, "1", kWindow, {}, "Distance between neighbours in the window."})};
  for (LayerKey& key : last_keys()) keys.push_back(std::move(key));
  keys.push_back(int8_weight_key());
  return {"conv" + number + "d", number + "-D convolution of " + kSamples[n - 1] + ".", 1, std::move(keys),
          check_groups};
}

LayerType transposed_convolution(std::size_t n, std::string (*check)(const LayerArguments&)) {
  const std::string number = std::to_string(n);
  std::vector<LayerKey> keys = {
      {"filters", V::integer, "", between(1, kMostChannels), {}, "Output channels."},
      of_dimensions(n, {"kernel", V::sizes, "", kWindow, {}, "Size of the window."}),
      of_dimensions(n, {"stride", V::sizes, "1", kWindow, {}, "Distance between the windows of neighbouring inputs."}),
      of_dimensions(n, {"padding", V::margins, "0", kMargin, {}, "Rows and columns that are cut off on each side."}),
      of_dimensions(n, {"output_padding",
                        V::sizes,
                        "0",
                        kMargin,
                        {},
                        n == 2 ? "Rows added below and columns added on the right; less than the stride."
                               : "Values added at the end; less than the stride."}),
      of_dimensions(n, {"dilation", V::sizes, "1", kWindow, {}, "Distance between neighbours in the window."})};
  for (LayerKey& key : last_keys()) keys.push_back(std::move(key));
  return {"conv" + number + "d_transpose",
          "Transposed " + number + "-D convolution of " + kSamples[n - 1] + ", which makes samples larger: conv" +
              number + "d's gradient by its input.",
          1, std::move(keys), check};
}

}  // namespace

std::vector<LayerType> convolution_layers() {
  return {convolution(1),
          convolution(2),
          convolution(3),
          transposed_convolution(1, check_transposed<1>),
          transposed_convolution(2, check_transposed<2>),
          transposed_convolution(3, check_transposed<3>)};
}

}  // namespace gpunn::config
