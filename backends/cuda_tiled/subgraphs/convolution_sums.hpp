// Whether convolutions make the sums of the batch norms beside them.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace gpunn::cuda_tiled {

// Which batch norms have their sums made by the convolution beside them. GPUNN_CONVOLUTION_STATISTICS in the
// environment makes them fewer, to compare: "0" is none, "forward" those of forward passes.
enum class ConvolutionSums { none, forward, all };

inline ConvolutionSums convolution_sums() {
  static const ConvolutionSums chosen = [] {
    const char* given = std::getenv("GPUNN_CONVOLUTION_STATISTICS");  // NOLINT(concurrency-mt-unsafe): never set here
    const std::string_view name = given == nullptr ? "" : given;
    if (name == "0") return ConvolutionSums::none;
    return name == "forward" ? ConvolutionSums::forward : ConvolutionSums::all;
  }();
  return chosen;
}

// About what it saves that a convolution makes the sums, if that spares the device so many bytes: the bytes at so many
// a second, less what its tiles take longer than those whose results TMA stores (H100, ResNet-50: 4 to 8 us). More than
// 0, which would say that it is not known.
inline double seconds_behind_convolution(double bytes) {
  constexpr double kBytesASecond = 6e12, kSlowerTiles = 5e-6, kLeast = 1e-7;
  return std::max(bytes / kBytesASecond - kSlowerTiles, kLeast);
}

}  // namespace gpunn::cuda_tiled
