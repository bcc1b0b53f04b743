// Computes in one pass the gradient of MAX_POOL2D or AVG_POOL2D, that of the ReLU before it, and its sum by channel,
// which is the gradient of a bias before the ReLU. subgraphs/pooling.hpp has the measurements.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "common/pooling.hpp"

namespace gpunn::cuda_tiled {

inline constexpr int kPoolingThreads = 256;  // of a block
inline constexpr int kPoolingSteps = 2;      // patches that a thread has in flight

struct PoolingGradient {
  backends::Pool pool;
  int64_t channels = 0;  // that have a sum each; 1 without
  bool mean = false;     // of AVG_POOL2D
  bool bias = false;     // the sum is wanted
  int width = 0;         // columns that a thread takes, of windows of 2x2; 0: windows of any kind, by whole images
  int64_t images = 1;    // that a block takes at once, if by whole images
  int64_t of_share = 1;  // a block's part of a channel: images, or patches of 2 rows x `width`
  int64_t shares = 1;
  uint64_t workspace_bytes = 0;
  unsigned shared_bytes = 0;

  // The number of patches of an image.
  int64_t patches() const { return (pool.rows.inputs + 1) / 2 * (pool.columns.inputs / width); }
};

struct PoolingGradientArrays {
  const float* dpooled;
  const float* y;  // of the ReLU
  float* dx;
  float* db;           // nullptr: is not wanted
  float* sums;         // the workspace
  unsigned* counters;  // a Counters of as many as there are channels
};

// Throws Refusal.
PoolingGradient pooling_gradient_of(const backends::Pool& pool, int64_t channels, bool mean, bool bias);
void run_pooling_gradient(const PoolingGradient& plan, const PoolingGradientArrays& arrays, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
