#include "cuda_common/launch.hpp"
#include "trial.hpp"

namespace gpunn::cudnn {
namespace {

using cuda::launch;
using cuda::thread_each;
using cuda::thread_index;

// The finalizer of MurmurHash3 (Appleby, 2011).
__device__ uint32_t mixed(uint32_t h) {
  h ^= h >> 16U;
  h *= 0x85ebca6bU;
  h ^= h >> 13U;
  h *= 0xc2b2ae35U;
  return h ^ h >> 16U;
}

__global__ void fill(float* x, int64_t n, uint32_t seed) {
  const int64_t i = thread_index();
  if (i < n) x[i] = static_cast<float>(mixed(static_cast<uint32_t>(i) ^ mixed(seed)) >> 8U) * 0x1p-23F - 1.0F;
}

__global__ void differences(const float* a, const float* b, int64_t n, float tolerance, unsigned* count) {
  const int64_t i = thread_index();
  if (i >= n) return;
  const bool one_nan = (a[i] != a[i]) != (b[i] != b[i]);
  if (one_nan || fabsf(a[i] - b[i]) > tolerance) atomicAdd(count, 1U);
}

__global__ void bias_and_activation(float* y, const float* bias, int64_t n, int64_t channels, int64_t size, bool relu) {
  const int64_t i = thread_index();
  if (i >= n) return;
  const float sum = y[i] + bias[i / size % channels];
  y[i] = relu && sum < 0.0F ? 0.0F : sum;
}

}  // namespace

void fill_uniform(float* x, int64_t n, uint32_t seed, cudaStream_t stream) {
  launch(fill, thread_each(n), stream, x, n, seed);
}

void count_differences(const float* a, const float* b, int64_t n, float tolerance, unsigned* count,
                       cudaStream_t stream) {
  launch(differences, thread_each(n), stream, a, b, n, tolerance, count);
}

void add_bias(float* y, const float* bias, int64_t rows, int64_t channels, int64_t size, bool relu,
              cudaStream_t stream) {
  const int64_t n = rows * channels * size;
  launch(bias_and_activation, thread_each(n), stream, y, bias, n, channels, size, relu);
}

}  // namespace gpunn::cudnn
