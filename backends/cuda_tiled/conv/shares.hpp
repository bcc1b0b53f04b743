// Sums that are cut in shares, so that there are blocks for the whole GPU: how many shares, and their sum.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace gpunn::cuda_tiled::conv {

struct Shares {
  int count = 1;
  int steps = 1;  // of a share; the last may have fewer
};

// Of `steps` that each of `blocks` makes, where `resident` blocks run at once: the count with the shortest time in
// waves, a block's beginning and end, and the adding of shares, being worth `overhead` steps.
Shares shares_of(int64_t blocks, int steps, int resident, int overhead, int most);

// to[i] = sum of parts[share][i] in the order of the shares; then the bias of i's channel, i / plane % channels, and
// ReLU.
struct SharesEnd {
  const float* bias = nullptr;
  int channels = 1;
  int plane = 1;
  bool relu = false;
};
void add_shares(const float* parts, float* to, int64_t size, int count, const SharesEnd& end, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled::conv
