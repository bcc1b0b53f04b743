// Two kernels. The first serves adjacent 2x2 windows of even width. A thread has whole windows, two rows of two or four
// columns. It finds each maximum again and writes each element of dx once, with accesses of 8 or 16 bytes. The second
// serves all other windows: a thread block takes whole images, and shared memory holds each window's gradient and the
// position of its maximum.
//
// A block has a share of a channel (channel_sums.cuh), or a share of all planes if no sum is needed.
#include <cstdint>

#include "channel_sums.cuh"
#include "cuda_common/launch.hpp"
#include "divider.cuh"
#include "pooling/maximum.cuh"
#include "pooling/pooling_gradient.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::Pool;

constexpr int kThreadsOfBlock = kPoolingThreads;
constexpr int kWarpsOfBlock = kThreadsOfBlock / 32;
constexpr int kSteps = kPoolingSteps;
constexpr unsigned kAll = 0xffffffffU;

__device__ float sum_of_warp(float mine) {
  for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(kAll, mine, offset);
  return mine;
}

// Adds what the threads of a block have.
__device__ void add_to_channel(float mine, uint32_t channel, uint32_t share, const ChannelSums& to) {
  if (to.sums == nullptr) return;
  __shared__ float of_warp[kWarpsOfBlock];
  mine = sum_of_warp(mine);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  add_share(sum_of_warp(threadIdx.x < kWarpsOfBlock ? of_warp[threadIdx.x] : 0.0F), channel, share, to);
}

template <int width>
__device__ __forceinline__ void load_row(const float* from, float (&to)[width]) {
  if constexpr (width == 4) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else if constexpr (width == 2) {
    const float2 two = *reinterpret_cast<const float2*>(from);
    to[0] = two.x, to[1] = two.y;
  } else {
    to[0] = *from;
  }
}

template <int width>
__device__ __forceinline__ void store_row(float* to, const float (&from)[width]) {
  if constexpr (width == 4) {
    *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
  } else {
    *reinterpret_cast<float2*>(to) = make_float2(from[0], from[1]);
  }
}

// Patches of 2 rows x `width` columns, of a channel's images one after another.
struct Patches {
  uint32_t channels;
  uint32_t count;  // of a channel
  uint32_t of_share;
  uint32_t width;    // of an image, in columns
  uint32_t plane;    // elements
  uint32_t outputs;  // elements of a plane of dpooled
  uint32_t output_rows;
  Divider by_image;  // patches of an image
  Divider by_row;    // patches side by side
};

// Windows of 2x2 side by side: each element of dx is of one window at most, which its thread has as a whole.
template <int width, bool mean>
__global__ void __launch_bounds__(kThreadsOfBlock)
    patches_backward(const float* __restrict__ dpooled, const float* __restrict__ y, float* __restrict__ dx, Patches z,
                     ChannelSums to) {
  constexpr int kWindows = width / 2;
  const uint32_t channel = blockIdx.x % z.channels;
  const uint32_t share = blockIdx.x / z.channels;
  const uint32_t first = share * z.of_share;
  const uint32_t end = min(z.count, first + z.of_share);
  float sum = 0.0F;
  for (uint32_t begin = first + threadIdx.x; begin < end; begin += kThreadsOfBlock * kSteps) {
    float above[kSteps][width], below[kSteps][width], gradient[kSteps][kWindows];
    uint32_t at[kSteps];
    bool whole[kSteps];  // false: the last row of an odd number, which no window has
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const uint32_t patch = begin + s * kThreadsOfBlock;
      if (patch >= end) break;
      const auto [image, in_image] = z.by_image(static_cast<int>(patch));
      const auto [row, column] = z.by_row(in_image);
      const uint32_t plane = image * z.channels + channel;
      at[s] = plane * z.plane + 2 * row * z.width + column * width;
      whole[s] = row < static_cast<int>(z.output_rows);
      if (!whole[s]) continue;
      load_row<width>(y + at[s], above[s]);
      load_row<width>(y + at[s] + z.width, below[s]);
      load_row<kWindows>(dpooled + plane * z.outputs + row * (z.width / 2) + column * kWindows, gradient[s]);
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      if (begin + s * kThreadsOfBlock >= end) break;
      float upper[width] = {}, lower[width] = {};
      if (whole[s]) {
#pragma unroll
        for (int i = 0; i < kWindows; ++i) {
          const float a = above[s][2 * i], b = above[s][2 * i + 1], c = below[s][2 * i], d = below[s][2 * i + 1];
          if constexpr (mean) {
            const float part = gradient[s][i] / 4.0F;
            upper[2 * i] = a > 0.0F ? part : 0.0F;
            upper[2 * i + 1] = b > 0.0F ? part : 0.0F;
            lower[2 * i] = c > 0.0F ? part : 0.0F;
            lower[2 * i + 1] = d > 0.0F ? part : 0.0F;
            sum += upper[2 * i] + upper[2 * i + 1] + lower[2 * i] + lower[2 * i + 1];
          } else {
            int winner = 0;
            float best = a;
            if (beats(b, best)) best = b, winner = 1;
            if (beats(c, best)) best = c, winner = 2;
            if (beats(d, best)) best = d, winner = 3;
            const float passed = best > 0.0F ? gradient[s][i] : 0.0F;
            upper[2 * i] = winner == 0 ? passed : 0.0F;
            upper[2 * i + 1] = winner == 1 ? passed : 0.0F;
            lower[2 * i] = winner == 2 ? passed : 0.0F;
            lower[2 * i + 1] = winner == 3 ? passed : 0.0F;
            sum += passed;
          }
        }
        store_row<width>(dx + at[s] + z.width, lower);
      }
      store_row<width>(dx + at[s], upper);
    }
  }
  add_to_channel(sum, channel, share, to);
}

struct Axis {
  int inputs, outputs, window, stride, pad;
  Divider by_stride;

  explicit Axis(const backends::PoolAxis& axis)
      : inputs(static_cast<int>(axis.inputs)),
        outputs(static_cast<int>(axis.outputs)),
        window(static_cast<int>(axis.window)),
        stride(static_cast<int>(axis.stride)),
        pad(static_cast<int>(axis.pad)),
        by_stride(axis.stride) {}
};

// What the kernel knows when it is compiled, of both axes; 0: nothing.
template <int kWindow, int kStride>
struct Known {
  static __device__ int window(const Axis& axis) { return kWindow != 0 ? kWindow : axis.window; }
  static __device__ int stride(const Axis& axis) { return kStride != 0 ? kStride : axis.stride; }
  static __device__ int over_stride(const Axis& axis, int n) {
    return kStride != 0 ? n / kStride : axis.by_stride(n).quotient;
  }
};

struct Windows {
  Axis rows, columns;
  bool count_padding;
  uint32_t channels;
  uint32_t images;    // of the batch
  uint32_t of_share;  // images
  uint32_t at_once;   // images
  Divider by_input_plane, by_input_row, by_output_plane, by_output_row;
};

// Windows of any kind, which may overlap: first each window's gradient and the place of its maximum, into shared
// memory; then each element of dx adds, in the windows' order, what those windows that hold it have for it.
template <int kWindow, int kStride, bool mean>
__global__ void __launch_bounds__(kThreadsOfBlock)
    windows_backward(const float* __restrict__ dpooled, const float* __restrict__ y, float* __restrict__ dx, Windows z,
                     ChannelSums to) {
  using Is = Known<kWindow, kStride>;
  extern __shared__ float gradients[];  // [at_once, outputs]
  const int inputs = z.rows.inputs * z.columns.inputs;
  const int outputs = z.rows.outputs * z.columns.outputs;
  int* const places = reinterpret_cast<int*>(gradients + z.at_once * outputs);
  const uint32_t channel = blockIdx.x % z.channels;
  const uint32_t share = blockIdx.x / z.channels;
  const uint32_t end = min(z.images, (share + 1) * z.of_share);
  float sum = 0.0F;
  for (uint32_t first = share * z.of_share; first < end; first += z.at_once) {
    const int images = static_cast<int>(min(z.at_once, end - first));
    for (int i = static_cast<int>(threadIdx.x); i < images * outputs; i += kThreadsOfBlock) {
      const auto [image, output] = z.by_output_plane(i);
      const auto [p, q] = z.by_output_row(output);
      const uint32_t plane = (first + image) * z.channels + channel;
      const float gradient = dpooled[plane * outputs + output];
      const int top = p * Is::stride(z.rows) - z.rows.pad;
      const int left = q * Is::stride(z.columns) - z.columns.pad;
      const int begin_row = max(top, 0), end_row = min(top + Is::window(z.rows), z.rows.inputs);
      const int begin_column = max(left, 0), end_column = min(left + Is::window(z.columns), z.columns.inputs);
      if constexpr (mean) {
        const int count = z.count_padding ? Is::window(z.rows) * Is::window(z.columns)
                                          : (end_row - begin_row) * (end_column - begin_column);
        gradients[i] = gradient / static_cast<float>(count);
      } else {
        const float* const of_plane = y + plane * inputs;
        int place = begin_row * z.columns.inputs + begin_column;
        float best = of_plane[place];
        const auto look = [&](int row, int column) {
          const int at = row * z.columns.inputs + column;
          const float value = of_plane[at];
          if (beats(value, best)) best = value, place = at;
        };
        if constexpr (kWindow != 0) {
#pragma unroll
          for (int r = 0; r < kWindow; ++r) {
#pragma unroll
            for (int c = 0; c < kWindow; ++c) {
              // Padding reads an element of the window once more.
              look(min(max(top + r, begin_row), end_row - 1), min(max(left + c, begin_column), end_column - 1));
            }
          }
        } else {
          for (int row = begin_row; row < end_row; ++row) {
            for (int column = begin_column; column < end_column; ++column) look(row, column);
          }
        }
        gradients[i] = gradient;
        places[i] = best > 0.0F ? place : -1;
      }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < images * inputs; i += kThreadsOfBlock) {
      const auto [image, input] = z.by_input_plane(i);
      const auto [row, column] = z.by_input_row(input);
      const uint32_t at = ((first + image) * z.channels + channel) * inputs + input;
      const int below = row + z.rows.pad - Is::window(z.rows);
      const int right = column + z.columns.pad - Is::window(z.columns);
      const int begin_p = below < 0 ? 0 : Is::over_stride(z.rows, below) + 1;
      const int begin_q = right < 0 ? 0 : Is::over_stride(z.columns, right) + 1;
      const int end_p = min(Is::over_stride(z.rows, row + z.rows.pad) + 1, z.rows.outputs);
      const int end_q = min(Is::over_stride(z.columns, column + z.columns.pad) + 1, z.columns.outputs);
      float gradient = 0.0F;
      const float activation = mean ? y[at] : 1.0F;
      for (int p = begin_p; p < end_p; ++p) {
        for (int q = begin_q; q < end_q; ++q) {
          const int output = image * outputs + p * z.columns.outputs + q;
          if (mean || places[output] == input) gradient += gradients[output];
        }
      }
      if (!(activation > 0.0F)) gradient = 0.0F;
      dx[at] = gradient;
      sum += gradient;
    }
    __syncthreads();
  }
  add_to_channel(sum, channel, share, to);
}

template <bool mean>
void run_patches(const PoolingGradient& plan, const PoolingGradientArrays& arrays, const ChannelSums& sums,
                 cudaStream_t stream) {
  const Pool& pool = plan.pool;
  const int64_t of_image = plan.patches();
  const Patches z{.channels = static_cast<uint32_t>(plan.channels),
                  .count = static_cast<uint32_t>(pool.planes / plan.channels * of_image),
                  .of_share = static_cast<uint32_t>(plan.of_share),
                  .width = static_cast<uint32_t>(pool.columns.inputs),
                  .plane = static_cast<uint32_t>(pool.input_size()),
                  .outputs = static_cast<uint32_t>(pool.output_size()),
                  .output_rows = static_cast<uint32_t>(pool.rows.outputs),
                  .by_image = Divider(of_image),
                  .by_row = Divider(pool.columns.inputs / plan.width)};
  cuda::launch(plan.width == 4 ? patches_backward<4, mean> : patches_backward<2, mean>,
               cuda::block_each(plan.channels * plan.shares, kThreadsOfBlock), stream, arrays.dpooled, arrays.y,
               arrays.dx, z, sums);
}

template <bool mean>
void run_windows(const PoolingGradient& plan, const PoolingGradientArrays& arrays, const ChannelSums& sums,
                 cudaStream_t stream) {
  const Pool& pool = plan.pool;
  const Windows z{.rows = Axis(pool.rows),
                  .columns = Axis(pool.columns),
                  .count_padding = pool.count_padding,
                  .channels = static_cast<uint32_t>(plan.channels),
                  .images = static_cast<uint32_t>(pool.planes / plan.channels),
                  .of_share = static_cast<uint32_t>(plan.of_share),
                  .at_once = static_cast<uint32_t>(plan.images),
                  .by_input_plane = Divider(pool.input_size()),
                  .by_input_row = Divider(pool.columns.inputs),
                  .by_output_plane = Divider(pool.output_size()),
                  .by_output_row = Divider(pool.columns.outputs)};
  const auto both = [&](int64_t window, int64_t stride) {
    return pool.rows.window == window && pool.columns.window == window && pool.rows.stride == stride &&
           pool.columns.stride == stride;
  };
  const auto kernel = both(3, 2)   ? windows_backward<3, 2, mean>
                      : both(2, 2) ? windows_backward<2, 2, mean>
                                   : windows_backward<0, 0, mean>;
  cuda::Launch shape = cuda::block_each(plan.channels * plan.shares, kThreadsOfBlock);
  shape.shared_bytes = plan.shared_bytes;
  cuda::launch(kernel, shape, stream, arrays.dpooled, arrays.y, arrays.dx, z, sums);
}

}  // namespace

void run_pooling_gradient(const PoolingGradient& plan, const PoolingGradientArrays& arrays, cudaStream_t stream) {
  const ChannelSums sums{.of_shares = arrays.sums,
                         .sums = plan.bias ? arrays.db : nullptr,
                         .counters = arrays.counters,
                         .shares = static_cast<uint32_t>(plan.shares)};
  if (plan.width > 0) {
    (plan.mean ? run_patches<true> : run_patches<false>)(plan, arrays, sums, stream);
  } else {
    (plan.mean ? run_windows<true> : run_windows<false>)(plan, arrays, sums, stream);
  }
}

}  // namespace gpunn::cuda_tiled
