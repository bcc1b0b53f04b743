#include <algorithm>

#include "conv/shares.hpp"
#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::conv {
namespace {

__global__ void add_parts(const float* parts, float* to, int64_t size, int count, SharesEnd end) {
  const int64_t i = cuda::thread_index();
  if (i >= size) return;
  float sum = 0.0F;
#pragma unroll 8
  for (int share = 0; share < count; ++share) sum += parts[share * size + i];
  to[i] = finish_at(end.epilogue, sum, i / end.plane % end.channels);
}

}  // namespace

Shares shares_of(int64_t blocks, int steps, int resident, int overhead, int most) {
  constexpr int64_t kMostWaves = 8;  // with more, the last one's idle blocks matter little
  Shares best{.count = 1, .steps = std::max(steps, 1)};
  int64_t shortest = INT64_MAX;
  for (int count = 1; count <= std::min(steps, most); ++count) {
    const int of_share = cuda::divide_up(steps, count);
    const int64_t waves = cuda::divide_up(blocks * count, resident);
    const int64_t time = waves * (of_share + overhead) + (count > 1 ? overhead : 0);
    if (time < shortest) {
      shortest = time;
      best = {.count = cuda::divide_up(steps, of_share), .steps = of_share};
    }
    if (waves > kMostWaves) break;
  }
  return best;
}

void add_shares(const float* parts, float* to, int64_t size, int count, const SharesEnd& end, cudaStream_t stream) {
  cuda::launch(add_parts, cuda::thread_each(size), stream, parts, to, size, count, end);
}

}  // namespace gpunn::cuda_tiled::conv
