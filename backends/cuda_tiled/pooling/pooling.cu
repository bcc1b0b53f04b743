// MAX_POOL2D and its gradient for windows of 2x2 at stride 2 without padding; the base serves other windows of packed
// images.
//
// These kernels replace cuDNN's for two reasons. cuDNN's documentation does not say which of several equal maxima gets
// the gradient, nor the result for a window of minus infinities, while ops.h does. Its gradient also has to read y,
// which is unnecessary if windows don't overlap: a thread sees the whole window and finds the maximum again.
//
// AVG_POOL2D and its gradient for windows that cover the whole image, as at the end of residual networks. One warp sums
// one image, and its lanes read neighbours. In the base one thread sums one image, and neighbouring threads read H * W
// floats apart. The order of additions depends on the shape alone.
//
// Channels-last images are in channels_last.cu and channels_last_gradient.cu.
#include <cstdint>
#include <limits>

#include "common/pooling.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/alignment.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "pooling/channels_last.hpp"
#include "pooling/maximum.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

Pool served(const Pool& pool) {
  const auto halves = [](const PoolAxis& axis) { return axis.window == 2 && axis.stride == 2 && axis.pad == 0; };
  require(halves(pool.rows) && halves(pool.columns), "only windows of 2x2 at stride 2 without padding gain here");
  // Indices are 32 bits wide: divisions of 64 bits would take longer than the memory.
  require(
      static_cast<double>(pool.planes) * static_cast<double>(pool.input_size()) < std::numeric_limits<int32_t>::max(),
      "the tensor has more than 2^31 elements");
  return pool;
}

// A mean of whole images.
Pool whole(const Pool& pool) {
  const auto all = [](const PoolAxis& axis) { return axis.window == axis.inputs && axis.pad == 0; };
  require(all(pool.rows) && all(pool.columns), "only means of whole images gain here");
  require(pool.input_size() > 1, "the images are of one pixel");
  require(
      static_cast<double>(pool.planes) * static_cast<double>(pool.input_size()) < std::numeric_limits<int32_t>::max(),
      "the tensor has more than 2^31 elements");
  return pool;
}

// Channels-last images of any dtype have kernels for all windows (channels_last.cu).
struct PoolPlan {
  Pool pool;
  int32_t dtype = GPUNN_F32;
};

template <Pool (*pool_of)(const OpDesc&), Pool (*packed)(const Pool&),
          void (*require_last)(const Pool&) = pooling_last::require_served>
PoolPlan plan_of(const OpDesc& desc) {
  const PoolPlan plan{pool_of(desc), desc.output(0).dtype};
  if (plan.pool.channels_last) {
    require_last(plan.pool);
    return plan;
  }
  require(plan.dtype == GPUNN_F32, "images in half precision have to lie channels-last");
  packed(plan.pool);
  return plan;
}

// Two neighbouring numbers: in one access where the width is even, since every row then begins at a multiple of 8
// bytes.
template <bool kEven>
__device__ float2 load_pair(const float* at) {
  if constexpr (kEven) return *reinterpret_cast<const float2*>(at);
  return {at[0], at[1]};
}

template <bool kEven>
__device__ void store_pair(float* at, float first, float second) {
  if constexpr (kEven) {
    *reinterpret_cast<float2*>(at) = {first, second};
  } else {
    at[0] = first;
    at[1] = second;
  }
}

// A thread an output.
template <bool kEven>
__global__ void forward(const float* x, float* y, uint32_t n, uint32_t outputs, uint32_t columns, uint32_t width,
                        uint32_t plane) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint32_t q = i % columns;
  const uint32_t row = i / columns % (outputs / columns);
  const float* at = x + i / outputs * plane + 2 * row * width + 2 * q;
  const float2 above = load_pair<kEven>(at);
  const float2 below = load_pair<kEven>(at + width);
  float best = above.x;
  if (beats(above.y, best)) best = above.y;
  if (beats(below.x, best)) best = below.x;
  if (beats(below.y, best)) best = below.y;
  y[i] = best;
}

// A thread a cell of 2x2 inputs, also one at the edge that no window covers.
template <bool kEven>
__global__ void backward(const float* dy, const float* x, float* dx, uint32_t n, uint32_t cell_rows,
                         uint32_t cell_columns, uint32_t height, uint32_t width) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint32_t q = i % cell_columns;
  const uint32_t p = i / cell_columns % cell_rows;
  const uint32_t plane = i / (cell_rows * cell_columns);
  const uint32_t at = plane * height * width + 2 * p * width + 2 * q;
  const uint32_t outputs_across = width / 2;
  if (p >= height / 2 || q >= outputs_across) {
    const bool right = 2 * q + 1 < width;
    const bool below = 2 * p + 1 < height;
    dx[at] = 0.0F;
    if (right) dx[at + 1] = 0.0F;
    if (below) dx[at + width] = 0.0F;
    if (right && below) dx[at + width + 1] = 0.0F;
    return;
  }
  const float gradient = dy[(plane * (height / 2) + p) * outputs_across + q];
  const float2 above = load_pair<kEven>(x + at);
  const float2 below = load_pair<kEven>(x + at + width);
  int winner = 0;
  float best = above.x;
  if (beats(above.y, best)) {
    best = above.y;
    winner = 1;
  }
  if (beats(below.x, best)) {
    best = below.x;
    winner = 2;
  }
  if (beats(below.y, best)) winner = 3;
  store_pair<kEven>(dx + at, winner == 0 ? gradient : 0.0F, winner == 1 ? gradient : 0.0F);
  store_pair<kEven>(dx + at + width, winner == 2 ? gradient : 0.0F, winner == 3 ? gradient : 0.0F);
}

constexpr uint32_t kPoolLanes = 32;

// A warp an image of `size` pixels.
__global__ void mean_of_images(const float* x, float* y, uint32_t images, uint32_t size) {
  const uint32_t image = blockIdx.x * (blockDim.x / kPoolLanes) + threadIdx.x / kPoolLanes;
  if (image >= images) return;  // a warp leaves as a whole
  const uint32_t lane = threadIdx.x % kPoolLanes;
  const float* at = x + image * size;
  float sum = 0.0F;
#pragma unroll 4
  for (uint32_t i = lane; i < size; i += kPoolLanes) sum += at[i];
  for (uint32_t reach = kPoolLanes / 2; reach > 0; reach /= 2) sum += __shfl_down_sync(0xffffffffU, sum, reach);
  if (lane == 0) y[image] = sum / static_cast<float>(size);
}

// A thread an element.
__global__ void mean_backward(const float* dy, float* dx, uint32_t n, uint32_t size) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) dx[i] = dy[i / size] / static_cast<float>(size);
}

// A thread four neighbours, all of one image.
__global__ void mean_backward_by_four(const float* dy, float4* dx, uint32_t quarters, uint32_t size) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quarters) return;
  const float share = dy[4 * i / size] / static_cast<float>(size);
  dx[i] = {share, share, share, share};
}

void run_forward_mean(const PoolPlan& plan, cudaStream_t stream, const OpArgs& args) {
  const Pool& pool = plan.pool;
  if (pool.channels_last) {
    return pooling_last::run_mean(pool, plan.dtype, args.in<void>(0), args.out<void>(0), stream);
  }
  launch(mean_of_images, thread_each(pool.planes * kPoolLanes), stream, args.in<float>(0), args.out<float>(0),
         static_cast<uint32_t>(pool.planes), static_cast<uint32_t>(pool.input_size()));
}

void run_backward_mean(const PoolPlan& plan, cudaStream_t stream, const OpArgs& args) {
  const Pool& pool = plan.pool;
  if (pool.channels_last) {
    return pooling_last::run_mean_backward(pool, plan.dtype, args.in<void>(0), args.out<void>(0), stream);
  }
  const int64_t n = pool.planes * pool.input_size();
  const auto size = static_cast<uint32_t>(pool.input_size());
  auto* dx = args.out<float>(0);
  if (size % 4 == 0 && is_aligned(dx, sizeof(float4))) {
    launch(mean_backward_by_four, thread_each(n / 4), stream, args.in<float>(0), reinterpret_cast<float4*>(dx),
           static_cast<uint32_t>(n / 4), size);
  } else {
    launch(mean_backward, thread_each(n), stream, args.in<float>(0), dx, static_cast<uint32_t>(n), size);
  }
}

void run_forward(const PoolPlan& plan, cudaStream_t stream, const OpArgs& args) {
  const Pool& pool = plan.pool;
  if (pool.channels_last) {
    return pooling_last::run_maximum(pool, plan.dtype, args.in<void>(0), args.out<void>(0), stream);
  }
  const int64_t n = pool.planes * pool.output_size();
  launch(pool.columns.inputs % 2 == 0 ? forward<true> : forward<false>, thread_each(n), stream, args.in<float>(0),
         args.out<float>(0), static_cast<uint32_t>(n), static_cast<uint32_t>(pool.output_size()),
         static_cast<uint32_t>(pool.columns.outputs), static_cast<uint32_t>(pool.columns.inputs),
         static_cast<uint32_t>(pool.input_size()));
}

void run_backward(const PoolPlan& plan, cudaStream_t stream, const OpArgs& args) {
  const Pool& pool = plan.pool;
  if (pool.channels_last) {
    return pooling_last::run_maximum_backward(pool, plan.dtype, args.in<void>(0), args.in<void>(1), args.out<void>(0),
                                              stream);
  }
  const int64_t cell_rows = (pool.rows.inputs + 1) / 2;
  const int64_t cell_columns = (pool.columns.inputs + 1) / 2;
  const int64_t n = pool.planes * cell_rows * cell_columns;
  launch(pool.columns.inputs % 2 == 0 ? backward<true> : backward<false>, thread_each(n), stream, args.in<float>(0),
         args.in<float>(1), args.out<float>(0), static_cast<uint32_t>(n), static_cast<uint32_t>(cell_rows),
         static_cast<uint32_t>(cell_columns), static_cast<uint32_t>(pool.rows.inputs),
         static_cast<uint32_t>(pool.columns.inputs));
}

}  // namespace

void add_pooling_kernels(TiledDevice& device) {
  const auto add = [&](int32_t op, const char* name, PoolPlan (*plan)(const OpDesc&), auto run) {
    add_op(device, op, name, plan, run, Dtypes::floating, Layouts::channels_last_too);
  };
  add(GPUNN_OP_MAX_POOL2D, "max_pool2d", plan_of<max_pool_of, served>, run_forward);
  add(GPUNN_OP_MAX_POOL2D_BACKWARD, "max_pool2d_backward",
      plan_of<max_pool_backward_of, served, pooling_last::require_gradient_served>, run_backward);
  add(GPUNN_OP_AVG_POOL2D, "avg_pool2d", plan_of<avg_pool_of, whole>, run_forward_mean);
  add(GPUNN_OP_AVG_POOL2D_BACKWARD, "avg_pool2d_backward", plan_of<avg_pool_backward_of, whole>, run_backward_mean);
}

}  // namespace gpunn::cuda_tiled
