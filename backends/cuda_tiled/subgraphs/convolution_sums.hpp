// What the subgraphs of batch norms beside convolutions share.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cuda_common/divide_up.hpp"

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

// Where the next part of a workspace begins.
inline uint64_t workspace_aligned(uint64_t bytes) {
  constexpr uint64_t kAlignment = 256;
  return cuda::divide_up(bytes, kAlignment) * kAlignment;
}

}  // namespace gpunn::cuda_tiled
