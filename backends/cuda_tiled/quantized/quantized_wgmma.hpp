// The plans of quantized:wgmma_256x128 and its siblings (quantized_wgmma.cu).
#pragma once

#include <array>
#include <optional>

#include <cuda_runtime_api.h>

#include "common/convolution.hpp"
#include "quantized/quantized_convolution.hpp"
#include "quantized/quantized_patch.hpp"

namespace gpunn::cuda_tiled {

// A block's tile is pixels x filters; `blocks` of them share a multiprocessor.
struct QuantizedWgmmaTile {
  int pixels, filters;
  int blocks;
};

inline constexpr std::array<QuantizedWgmmaTile, 4> kQuantizedWgmmaTiles = {
    {{128, 128, 1}, {256, 128, 1}, {256, 64, 1}, {128, 64, 3}}};

struct QuantizedWgmmaPlan {
  QuantizedPatch patch;
  int plane = 0;    // bytes of 16 channels of a patch
  int chunks = 1;   // of 64 channels
  int patches = 1;  // that shared memory has room for
  int shared_bytes = 0;
};

// Returns nothing if the kernel does not serve the shape: its groups are not multiples of 64 channels, or a patch does
// not fit into shared memory.
std::optional<QuantizedWgmmaPlan> quantized_wgmma_plan(const backends::ConvolutionShape& shape, int tile);

// Uses the tile kQuantizedWgmmaTiles[index].
void launch_quantized_wgmma(int index, const QuantizedWgmmaPlan& plan, const QuantizedArguments& arguments,
                            cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
