// quantized:rows: dense layers in eight bits of a few rows. A warp computes one unit for all rows: it reads the unit's
// weights once, 16 bytes a lane, multiplies four numbers in one instruction, and adds its lanes' sums at the end. A
// tile of tensor cores would be almost empty, and few blocks would read the weights.
#include <cstdint>

#include "cuda_common/launch.hpp"
#include "quantized/quantized_convolution.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr int kDenseWarps = 4;  // of a block
constexpr int kDenseBytes = 16;

// sum += x w, of four numbers each.
__device__ __forceinline__ int32_t add_products(uint32_t x, uint32_t w, int32_t sum) {
  int32_t result = sum;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(w), "r"(sum));
  return result;
}

__device__ __forceinline__ int32_t add_products(const uint4& x, const uint4& w, int32_t sum) {
  return add_products(x.w, w.w, add_products(x.z, w.z, add_products(x.y, w.y, add_products(x.x, w.x, sum))));
}

__device__ __forceinline__ int32_t sum_of_warp(int32_t sum) {
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, step);
  return sum;
}

template <int rows>
__global__ void __launch_bounds__(32 * kDenseWarps) multiply_rows(const __grid_constant__ QuantizedArguments a) {
  constexpr uint32_t kHighestBits = 0x80808080U, kOnes = 0x01010101U;  // weights have the zero point 128
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int unit = static_cast<int>(blockIdx.x) * kDenseWarps + static_cast<int>(threadIdx.x) / 32;
  if (unit >= a.outputs) return;
  const uint8_t* const weights = a.w + int64_t{unit} * a.terms;
  int32_t sums[rows] = {};
  int32_t of_weights = 0;
#pragma unroll 4
  for (int term = lane * kDenseBytes; term < a.terms; term += 32 * kDenseBytes) {
    uint4 w = *reinterpret_cast<const uint4*>(weights + term);
    w = make_uint4(w.x ^ kHighestBits, w.y ^ kHighestBits, w.z ^ kHighestBits, w.w ^ kHighestBits);
    of_weights = add_products(make_uint4(kOnes, kOnes, kOnes, kOnes), w, of_weights);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      if (r < a.pixels) {
        sums[r] = add_products(*reinterpret_cast<const uint4*>(a.x + int64_t{r} * a.terms + term), w, sums[r]);
      }
    }
  }
  const int32_t first = -static_cast<int32_t>(a.x_zero_point) * sum_of_warp(of_weights);
  const float factor = a.x_scale * a.scale[unit];
  const float offset = a.bias != nullptr ? a.bias[unit] : 0.0F;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const int32_t sum = sum_of_warp(sums[r]) + first;
    if (lane == 0 && r < a.pixels) {
      a.numbers[int64_t{r} * a.outputs + unit] = static_cast<float>(sum) * factor + offset;
    }
  }
}

}  // namespace

void launch_dense_rows(const QuantizedArguments& arguments, cudaStream_t stream) {
  const auto kernel = arguments.pixels == 1   ? multiply_rows<1>
                      : arguments.pixels <= 4 ? multiply_rows<4>
                                              : multiply_rows<kMostDenseRows>;
  cuda::launch(kernel, cuda::block_each(cuda::divide_up(arguments.outputs, kDenseWarps), 32 * kDenseWarps), stream,
               arguments);
}

}  // namespace gpunn::cuda_tiled
