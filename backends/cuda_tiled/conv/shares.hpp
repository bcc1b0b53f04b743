// Splits long sums into shares, so that there are thread blocks for the whole GPU: chooses the number of shares, and
// adds them.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "epilogue.cuh"

namespace gpunn::cuda_tiled::conv {

struct Shares {
  int count = 1;
  int steps = 1;  // of a share; the last may have fewer
};

// The number of shares into which to split the `steps` of each of `blocks` blocks, of which `resident` run at once. It
// minimises the time, counted in waves of blocks. The start and end of a block, and adding the shares, take as long as
// `overhead` steps each.
Shares shares_of(int64_t blocks, int steps, int resident, int overhead, int most);

// to[i] = sum of parts[share][i] in the order of the shares, then the bias of i's channel, i / plane % channels, then
// ReLU.
struct SharesEnd {
  Epilogue epilogue;
  int channels = 1;
  int plane = 1;
};
void add_shares(const float* parts, float* to, int64_t size, int count, const SharesEnd& end, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled::conv
