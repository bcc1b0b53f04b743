// How conv:half_patch shares out its work (half_patch.cu): tiles of pixels, and the stages of shared memory for their
// patches.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda.h>

#include "conv/half/half_convolution.hpp"
#include "conv/half/half_patch.hpp"
#include "divider.cuh"
#include "epilogue.cuh"
#include "gemm/wgmma/tensor_map.hpp"
#include "half/half_product.hpp"

namespace gpunn::cuda_tiled {

inline constexpr int kPatchFilters = 64;   // of a block, whose weights stay in shared memory
inline constexpr int kPatchChannels = 64;  // at most, of x
inline constexpr int kAllPatchTaps = kPatchTaps * kPatchTaps;
inline constexpr int kPatchTapBytes = kPatchFilters * kLineBytes;  // of weights
inline constexpr int kPatchWeightBytes = kAllPatchTaps * kPatchTapBytes;
inline constexpr int kPatchConsumers = 2;                  // warpgroups
inline constexpr int kPatchStorers = kPatchConsumers * 4;  // warps
// A warp stores this many pixels of its 16 filters at a time.
inline constexpr int kStoredPixels = 16;
inline constexpr int kStoredFilters = 16;
inline constexpr int kPatchStagingBytes = kStoredPixels * kStoredFilters * int{sizeof(uint16_t)};  // of a warp

struct PatchConvolution {
  CUtensorMap x{}, w{};
  void* y = nullptr;
  Epilogue epilogue{};
  const void* residual = nullptr;  // laid out as y
  HalfStatistics statistics{};     // a slab a tile
  HalfGradient gradient{};         // likewise
  int height = 0, width = 0;       // of y
  int filters = 0;                 // of y
  int filter_tiles = 1;
  int row_pad = 0, column_pad = 0, row_dilation = 1, column_dilation = 1;
  int pixels = 0;      // of a tile, with gaps
  int patch_rows = 0;  // of x
  Divider pitch = {};  // pixels of a row
  int channel_steps = 0;
  int stages = 0;
  int units = 0;  // tiles of all images
  Divider image_units = {};

  __host__ __device__ int row_pitch() const { return static_cast<int>(pitch.by); }
  __host__ __device__ int brought() const { return patch_rows * row_pitch() * kLineBytes; }
  // What the last pixels, which are in a gap, read behind the patch goes nowhere.
  __host__ __device__ int stage_bytes() const {
    const int pixels_read = patch_rows * row_pitch() + (kPatchTaps - 1) * column_dilation;
    return (pixels_read + 7) / 8 * 8 * kLineBytes;
  }
  // The weights and the stages want to begin at a multiple of 1024 bytes.
  int shared_bytes() const {
    return kPatchWeightBytes + stages * stage_bytes() + kPatchStorers * kPatchStagingBytes + 1024;
  }
  int blocks(int multiprocessors) const {
    return std::min(std::max(multiprocessors / filter_tiles, 1), units) * filter_tiles;
  }
};

// The plan without its addresses, for a GPU of so many multiprocessors whose thread blocks may have so many bytes of
// shared memory. Throws Refusal.
PatchConvolution plan_patches(const HalfConvolution& problem, int multiprocessors, int shared_memory);

// Of the statistics, or sums, that the kernel leaves.
HalfSlabs patch_slabs(const PatchConvolution& plan);

}  // namespace gpunn::cuda_tiled
