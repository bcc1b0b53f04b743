// QUANTIZED_GLOBAL_AVG_POOL2D of channels-last images. A block has 128 channels of an image, four to a thread, and each
// of its eight warps every eighth pixel: neighbouring threads read neighbouring bytes. The warps' sums meet in shared
// memory.
#include <cstdint>

#include "common/quantization.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "cuda_common/quantization.cuh"
#include "device.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

constexpr int kMeanChannels = 4, kMeanWarps = 8, kMeanOfBlock = 32 * kMeanChannels;

__global__ void __launch_bounds__(32 * kMeanWarps)
    mean_bytes(const uint8_t* x, uint8_t* y, const __grid_constant__ QuantizedMean mean, int parts) {
  __shared__ int4 of_warp[kMeanWarps][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t image = static_cast<int>(blockIdx.x) / parts;
  const int64_t channel = int64_t{static_cast<int>(blockIdx.x) % parts} * kMeanOfBlock + lane * kMeanChannels;
  const bool there = channel < mean.channels;
  int4 sum = {};
  if (there) {
    const uint8_t* const from = x + image * mean.pixels * mean.channels + channel;
#pragma unroll 4
    for (int64_t p = warp; p < mean.pixels; p += kMeanWarps) {
      const uchar4 pixel = *reinterpret_cast<const uchar4*>(from + p * mean.channels);
      sum.x += pixel.x;
      sum.y += pixel.y;
      sum.z += pixel.z;
      sum.w += pixel.w;
    }
  }
  of_warp[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || !there) return;
  for (int other = 1; other < kMeanWarps; ++other) {
    const int4 more = of_warp[other][lane];
    sum = make_int4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
  }
  const auto zeros = static_cast<int32_t>(mean.pixels * mean.attrs.x_zero_point);
  *reinterpret_cast<uchar4*>(y + image * mean.channels + channel) =
      make_uchar4(stored_mean(sum.x - zeros, mean), stored_mean(sum.y - zeros, mean), stored_mean(sum.z - zeros, mean),
                  stored_mean(sum.w - zeros, mean));
}

QuantizedMean mean_of(const OpDesc& desc) {
  const QuantizedMean mean = quantized_mean_of(desc);
  require(mean.channels_last && mean.channels % kMeanChannels == 0,
          "is for channels-last images of a multiple of 4 channels");
  require(mean.images * mean.channels < int64_t{1} << 31, "is for fewer than 2^31 means");
  return mean;
}

void run_mean(const QuantizedMean& mean, cudaStream_t stream, const OpArgs& args) {
  const int64_t parts = divide_up(mean.channels, kMeanOfBlock);
  launch(mean_bytes, block_each(mean.images * parts, 32 * kMeanWarps), stream, args.in<uint8_t>(0),
         args.out<uint8_t>(0), mean, static_cast<int>(parts));
}

}  // namespace

void add_quantized_mean_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D, "quantized_global_avg_pool2d", mean_of, run_mean, Dtypes::f32,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_tiled
