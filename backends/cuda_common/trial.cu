#include "cuda_common/launch.hpp"
#include "cuda_common/trial.hpp"

namespace gpunn::cuda {
namespace {

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

}  // namespace

void fill_uniform(float* x, int64_t n, uint32_t seed, cudaStream_t stream) {
  launch(fill, thread_each(n), stream, x, n, seed);
}

void count_differences(const float* a, const float* b, int64_t n, float tolerance, unsigned* count,
                       cudaStream_t stream) {
  launch(differences, thread_each(n), stream, a, b, n, tolerance, count);
}

}  // namespace gpunn::cuda
