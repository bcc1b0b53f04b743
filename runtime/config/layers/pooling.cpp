#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

using V = LayerValue;

// The keys of a window, of as many dimensions as the input has.
std::vector<LayerKey> window_keys(const std::string& about_padding) {
  return {{"window", V::sizes, "", kWindow, {}, "Size of the window.", 0},
          {"stride", V::sizes, "window", kWindow, {}, "Step of the window.", 0},
          {"padding", V::margins, "0", kMargin, {}, about_padding, 0},
          {"dilation", V::sizes, "1", kWindow, {}, "Distance between neighbours in the window.", 0}};
}

}  // namespace

std::vector<LayerType> pooling_layers() {
  const std::string last = "Whether a last window that is only partly in the sample counts, as in PyTorch";
  std::vector<LayerKey> of_max = window_keys("Border on each side that never wins."),
                        of_mean = window_keys("Zeros on each side.");
  of_max.push_back({"ceil_mode", V::boolean, "false", {}, {}, last + "."});
  of_mean.push_back({"count_padding",
                     V::boolean,
                     "true",
                     {},
                     {},
                     "Whether a mean is over the zeros too; if not, the padding is below the window."});
  of_mean.push_back({"ceil_mode", V::boolean, "false", {}, {}, last + "; its mean is over that part."});
  return {
      {"max_pool", "The largest of each window of [C, L], [C, H, W] or [C, D, H, W].", 1, std::move(of_max)},
      {"avg_pool", "The mean of each window of [C, L], [C, H, W] or [C, D, H, W].", 1, std::move(of_mean)},
      {"adaptive_avg_pool",
       "Means of windows that give as many values as `size` says in each dimension of [C, L], [C, H, W] or [C, D, H, "
       "W], as PyTorch chooses them: window i of n is from i / n of the input's rows, rounded down, to (i + 1) / n, "
       "rounded up.",
       1,
       {{"size", V::sizes, "", kWindow, {}, "Sizes of the output: rows and columns of an image.", 0}}},
      {"global_avg_pool", "The mean of each channel: [C, L], [C, H, W] or [C, D, H, W] to [C].", 1, {}},
      {"global_max_pool", "The largest of each channel: [C, L], [C, H, W] or [C, D, H, W] to [C].", 1, {}},
  };
}

}  // namespace gpunn::config
