// Whether convolutions make the sums of the batch norms beside them.
#pragma once

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

}  // namespace gpunn::cuda_tiled
