#include <algorithm>

#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

std::string check_clamp(const LayerArguments& arguments) {
  return arguments.number("low") <= arguments.number("high") ? "" : "low must not be above high";
}

std::string check_reduce(const LayerArguments& arguments) {
  std::vector<int64_t> dimensions = arguments.list("dimensions");
  std::ranges::sort(dimensions);
  return std::ranges::adjacent_find(dimensions) == dimensions.end() ? "" : "dimensions: names a dimension twice";
}

std::string check_affine(const LayerArguments& arguments) {
  if (!arguments.boolean("weight") && !arguments.boolean("bias")) return "neither a weight nor a bias is left";
  const std::vector<int64_t> shape = arguments.list("shape");
  const bool by_channel = shape.size() == 1 && shape.front() == 0;
  return by_channel || std::ranges::find(shape, 0) == shape.end() ? "" : "shape: 0 stands for the channels alone";
}

}  // namespace

std::vector<LayerType> function_layers() {
  using V = LayerValue;
  constexpr double kLargest = 3.4028234663852886e38;  // of f32
  return {
      {"elu",
       "x where it is above 0, else alpha * (exp(x) - 1). (Clevert et al., 2015.)",
       1,
       {{"alpha", V::number, "1", between(-1000, 1000), {}, "The function falls to minus this."}}},
      {"selu", "1.0507 times elu with an alpha of 1.6733. (Klambauer et al., 2017.)", 1, {}},
      {"celu",
       "x where it is above 0, else alpha * (exp(x / alpha) - 1). (Barron, 2017.)",
       1,
       {{"alpha", V::number, "1", between(1e-3, 1000), {}, "The function falls to minus this."}}},
      {"softplus", "log(1 + exp(x)).", 1, {}},
      {"softsign", "x / (1 + |x|).", 1, {}},
      {"mish", "x * tanh(softplus(x)). (Misra, 2019.)", 1, {}},
      {"hard_sigmoid",
       "min(max(slope * x + offset, 0), 1).",
       1,
       {{"slope", V::number, "0.16666667", between(-1000, 1000), {}, "Factor of x; the default is 1/6, as in PyTorch."},
        {"offset", V::number, "0.5", between(-1000, 1000), {}, "Added to the product."}}},
      {"hard_swish", "x * min(max(x / 6 + 0.5, 0), 1). (Howard et al., 2019.)", 1, {}},
      {"prelu",
       "x where it is above 0, else a trained slope times x. (He et al., 2015.)",
       1,
       {{"channels", V::boolean, "false", {}, {}, "Whether each channel has a slope, in place of one for all."}}},
      {"clamp",
       "min(max(x, low), high).",
       1,
       {{"low", V::number, "0", between(-kLargest, kLargest), {}, "The least value."},
        {"high", V::number, "1", between(-kLargest, kLargest), {}, "The largest value."}},
       check_clamp},
      {"abs", "|x|.", 1, {}},
      {"exp", "The exponential function.", 1, {}},
      {"log", "The natural logarithm.", 1, {}},
      {"erf", "The error function.", 1, {}},
      {"power",
       "x to a power.",
       1,
       {{"exponent", V::number, "2", between(-1000, 1000), {}, "0.5 is the square root, -1 the reciprocal."}}},
      {"affine",
       "x times a weight plus a bias, which NumPy's rules broadcast to a sample.",
       1,
       {{"shape",
         V::list,
         "0",
         between(0, kMostUnits),
         {},
         "Sizes of weight and bias, from the sample's last dimension backwards; 0: one for each channel of [C, ...]."},
        {"weight", V::boolean, "true", {}, {}, "Whether there is a weight."},
        {"bias", V::boolean, "true", {}, {}, "Whether there is a bias."},
        {"trained",
         V::boolean,
         "true",
         {},
         {},
         "Whether training changes them; otherwise they are constants, kept as buffers."}},
       check_affine},
      {"reduce",
       "The mean, sum, largest, smallest or product over dimensions of a sample.",
       1,
       {{"function", V::choice, "mean", {}, {"mean", "sum", "max", "min", "prod"}, "How the values are combined."},
        {"dimensions", V::list, "", between(0, kMostDimensions - 1), {}, "Their numbers, from 0."},
        {"keep", V::boolean, "false", {}, {}, "Whether reduced dimensions stay, with a size of 1."}},
       check_reduce},
  };
}

}  // namespace gpunn::config
