#include <gpunn/abi.h>

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

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

template <class T>
__global__ void fill(T* x, int64_t n, uint32_t seed) {
  const int64_t i = thread_index();
  if (i >= n) return;
  const uint32_t random = mixed(static_cast<uint32_t>(i) ^ mixed(seed));
  if constexpr (std::is_same_v<T, uint8_t>) {
    x[i] = static_cast<uint8_t>(random >> 24U);
  } else {
    x[i] = static_cast<T>(static_cast<float>(random >> 8U) * 0x1p-23F - 1.0F);
  }
}

template <class T>
__global__ void differences(const T* a, const T* b, int64_t n, float tolerance, unsigned* count) {
  const int64_t i = thread_index();
  if (i >= n) return;
  const auto left = static_cast<float>(a[i]), right = static_cast<float>(b[i]);
  const bool one_nan = (left != left) != (right != right);
  if (one_nan || fabsf(left - right) > tolerance) atomicAdd(count, 1U);
}

// action(T()) for the type of the dtype.
template <class Action>
void with_type(int32_t dtype, const Action& action) {
  switch (dtype) {
    case GPUNN_BF16:
      return action(__nv_bfloat16());
    case GPUNN_F16:
      return action(__half());
    case GPUNN_U8:
      return action(uint8_t());
    default:
      return action(float());
  }
}

}  // namespace

void fill_uniform(void* x, int32_t dtype, int64_t n, uint32_t seed, cudaStream_t stream) {
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    launch(fill<T>, thread_each(n), stream, static_cast<T*>(x), n, seed);
  });
}

void count_differences(const void* a, const void* b, int32_t dtype, int64_t n, float tolerance, unsigned* count,
                       cudaStream_t stream) {
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    launch(differences<T>, thread_each(n), stream, static_cast<const T*>(a), static_cast<const T*>(b), n, tolerance,
           count);
  });
}

}  // namespace gpunn::cuda
