#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

std::string check_pool(const LayerArguments& arguments) {
  const auto window = arguments.pair("window");
  const auto padding = arguments.margins("padding");
  for (std::size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] >= window[i / 2]) {
      return "padding (" + std::to_string(padding[i]) + ") must be below the window (" + std::to_string(window[i / 2]) +
             ")";
    }
  }
  return {};
}

}  // namespace

std::vector<LayerType> pooling_layers() {
  using V = LayerValue;
  return {
      {"max_pool",
       "The largest of each window of [C, H, W].",
       1,
       {{"window", V::pair, "", kWindow, {}, "Size of the window."},
        {"stride", V::pair, "window", kWindow, {}, "Step of the window."},
        {"padding", V::margins, "0", kMargin, {}, "Border on each side that never wins; below the window."},
        {"ceil_mode",
         V::boolean,
         "false",
         {},
         {},
         "Whether a last window that is only partly in the image counts, as in PyTorch."}},
       check_pool},
      {"avg_pool",
       "The mean of each window of [C, H, W].",
       1,
       {{"window", V::pair, "", kWindow, {}, "Size of the window."},
        {"stride", V::pair, "window", kWindow, {}, "Step of the window."},
        {"padding", V::margins, "0", kMargin, {}, "Zeros on each side; below the window."},
        {"count_padding", V::boolean, "true", {}, {}, "Whether a mean is over the zeros too."},
        {"ceil_mode",
         V::boolean,
         "false",
         {},
         {},
         "Whether a last window that is only partly in the image counts, as in PyTorch; its mean is over that part."}},
       check_pool},
      {"adaptive_avg_pool",
       "Means of windows that give [C, rows, columns] of that size, as PyTorch chooses them: window i of n is from "
       "i / n of the input's rows, rounded down, to (i + 1) / n, rounded up.",
       1,
       {{"size", V::pair, "", kWindow, {}, "Rows and columns of the output."}}},
      {"global_avg_pool", "The mean of each channel: [C, H, W] to [C].", 1, {}},
      {"global_max_pool", "The largest of each channel: [C, H, W] to [C].", 1, {}},
  };
}

}  // namespace gpunn::config
