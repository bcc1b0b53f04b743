#include "simd/half.hpp"

#include <bit>

namespace gpunn::cpu::GPUNN_ISA {

static void widen_run(const BFloat16* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = std::bit_cast<float>(static_cast<uint32_t>(x[i].bits()) << 16);
}

static void narrow_run(const float* x, BFloat16* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const auto value = std::bit_cast<uint32_t>(x[i]);
    const uint32_t rounded = (value + 0x7FFFU + ((value >> 16) & 1U)) >> 16;
    const uint32_t not_a_number = value >> 16 | 0x40U;
    y[i] = BFloat16::of_bits(static_cast<uint16_t>((value & 0x7FFFFFFFU) > 0x7F800000U ? not_a_number : rounded));
  }
}

constinit const HalfKernels half_kernels{widen_run, narrow_run};

}  // namespace gpunn::cpu::GPUNN_ISA
