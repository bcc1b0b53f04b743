// COPY between tensors of any strides, converting between f32, bf16, f16, i32, i64 and u8. One thread copies one
// element.
//
// Elements are numbered in the order of y's memory, so that neighbouring threads write neighbouring elements. Stores
// are therefore coalesced, and loads are too if x has the same order. In a transpose each thread's 4 bytes come from a
// separate 32-byte sector. The rest of that sector only helps if it is used before the cache evicts it. The divisions
// that turn an element number into a position cost more than the copy. The next version would move tiles of 32 x 32
// through shared memory, reading along x's rows and writing along y's. It would move 16 bytes a thread if both sides
// are contiguous.
#include <limits>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/copy.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// C's conversion; where C leaves it undefined (a float beyond an integer type) the nearest value, 0 for NaN.
template <class T>
constexpr bool kHalf = std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, __half>;

template <class To, class From>
__device__ To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kHalf<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (kHalf<To>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr To kLeast = std::numeric_limits<To>::min();
    constexpr To kMost = std::numeric_limits<To>::max();
    // kMost + 1, a power of two: kMost itself would be rounded.
    constexpr From kBeyond = From(2) * From(To(1) << (std::numeric_limits<To>::digits - 1));
    if (isnan(value)) return 0;
    if (value >= kBeyond) return kMost;
    if (value <= From(kLeast)) return kLeast;
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
__global__ void copy(const From* x, To* y, Copy loops) {
  const int64_t i = thread_index();
  if (i >= loops.n) return;
  int64_t rest = i;
  int64_t from = 0;
  int64_t to = 0;
  for (int32_t d = loops.rank - 1; d > 0; --d) {
    const int64_t position = rest % loops.dim[d];
    rest /= loops.dim[d];
    from += position * loops.x_stride[d];
    to += position * loops.y_stride[d];
  }
  // What is left is the position in the outermost dimension; most copies have no other and divide nothing.
  y[to + rest * loops.y_stride[0]] = convert<To>(x[from + rest * loops.x_stride[0]]);
}

template <class From, class To>
void launch_copy(const Copy& loops, cudaStream_t stream, const OpArgs& args) {
  launch(copy<From, To>, thread_each(loops.n), stream, args.in<From>(0), args.out<To>(0), loops);
}

template <class From>
void copy_from(const Copy& loops, cudaStream_t stream, const OpArgs& args) {
  switch (loops.to) {
    case GPUNN_F32:
      return launch_copy<From, float>(loops, stream, args);
    case GPUNN_BF16:
      return launch_copy<From, __nv_bfloat16>(loops, stream, args);
    case GPUNN_F16:
      return launch_copy<From, __half>(loops, stream, args);
    case GPUNN_I32:
      return launch_copy<From, int32_t>(loops, stream, args);
    case GPUNN_I64:
      return launch_copy<From, int64_t>(loops, stream, args);
    default:
      return launch_copy<From, uint8_t>(loops, stream, args);
  }
}

void run_copy(const Copy& loops, cudaStream_t stream, const OpArgs& args) {
  switch (loops.from) {
    case GPUNN_F32:
      return copy_from<float>(loops, stream, args);
    case GPUNN_BF16:
      return copy_from<__nv_bfloat16>(loops, stream, args);
    case GPUNN_F16:
      return copy_from<__half>(loops, stream, args);
    case GPUNN_I32:
      return copy_from<int32_t>(loops, stream, args);
    case GPUNN_I64:
      return copy_from<int64_t>(loops, stream, args);
    default:
      return copy_from<uint8_t>(loops, stream, args);
  }
}

}  // namespace

void add_copy_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_COPY, "copy", copy_of, run_copy, Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
