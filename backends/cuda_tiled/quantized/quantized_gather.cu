// Kernels for any number of channels, and the preparation for zero points other than 0.
#include "quantized/quantized_kernel.cuh"

namespace gpunn::cuda_tiled {
namespace {

constexpr int kPrepareThreads = 128;

// A block a filter.
__global__ void __launch_bounds__(kPrepareThreads)
    sum_filter(const uint8_t* w, int64_t terms, int32_t x_zero_point, int32_t* first, uint8_t* padding) {
  constexpr int32_t kFilterZero = 128;
  constexpr int kWarps = kPrepareThreads / 32;
  __shared__ int32_t of_warp[kWarps];
  const uint8_t* filter = w + blockIdx.x * terms;
  int32_t sum = 0;
  for (int64_t i = threadIdx.x; i < terms; i += kPrepareThreads) sum += int32_t{filter[i]} - kFilterZero;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xFFFFFFFFU, sum, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < kWarps; ++i) sum += of_warp[i];
    first[blockIdx.x] = -x_zero_point * sum;
  }
  if (blockIdx.x == 0 && threadIdx.x < kChunkBytes) padding[threadIdx.x] = static_cast<uint8_t>(x_zero_point);
}

}  // namespace

void prepare_zero_point(const uint8_t* w, int64_t filters, int64_t terms, int32_t x_zero_point, int32_t* first,
                        uint8_t* padding, cudaStream_t stream) {
  cuda::launch(sum_filter, cuda::block_each(filters, kPrepareThreads), stream, w, terms, x_zero_point, first, padding);
}

void launch_gathered(int index, const QuantizedArguments& arguments, cudaStream_t stream) {
  if (index == 0) return launch_quantized_tile<kGatheredTiles[0], true>(arguments, stream);
  launch_quantized_tile<kGatheredTiles[1], true>(arguments, stream);
}

}  // namespace gpunn::cuda_tiled
