// Batch norm of images in two kernels, for channels that are too large for the registers of a thread block.
//
// The forward and the backward pass have two kernels each. In both a block has a share of a channel. The elements of
// the channel form one sequence through the rows, read four at a time if the layout allows it. The first kernel reduces
// each share. In the second every block merges the shares of its channel itself, which is a few loads for one warp and
// saves a kernel and a counter. Then it writes the result. It takes the blocks from last to first, since the data that
// the first kernel read last is still in the cache.
//
// A thread has 16 elements in flight and computes their mean and squared differences in registers, so that memory is
// read once for both. The moments of threads, warps and shares are then merged (Chan, Golub and LeVeque, 1983). The
// mean square minus the squared mean would lose the digits that the two have in common.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "moments.cuh"
#include "normalization/channel_shares.cuh"
#include "normalization/normalization_resident.hpp"

namespace gpunn::cuda_tiled::passes {

__device__ inline Moments merge_warp(Moments mine) {
  for (int offset = 16; offset > 0; offset /= 2) {
    mine = merge(mine, {__shfl_down_sync(kEveryLane, mine.n, offset), __shfl_down_sync(kEveryLane, mine.mean, offset),
                        __shfl_down_sync(kEveryLane, mine.squares, offset)});
  }
  return mine;
}

__device__ inline float2 sum_warp(float2 mine) {
  for (int offset = 16; offset > 0; offset /= 2) {
    mine.x += __shfl_down_sync(kEveryLane, mine.x, offset);
    mine.y += __shfl_down_sync(kEveryLane, mine.y, offset);
  }
  return mine;
}

// Mean and squares of every share.
template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock)
    reduce_statistics(const T* x, const int32_t* count, float2* parts, Split split) {
  const Share at = share_of(split, blockIdx.x);
  const unsigned end = min(at.end, counted_elements(count, split));
  Moments mine{0.0F, 0.0F, 0.0F};
  for_steps<width>(at.begin, end, [&](unsigned first) {
    float values[kInFlight];
    unsigned n = 0;
#pragma unroll
    for (unsigned j = 0; j < kInFlight / width; ++j) {
      const unsigned i = first + j * kBlock * width;
      if (i < end) {
        load<width>(x + address_of(split, at.channel, i), values + j * width);
        n += width;
      } else {
#pragma unroll
        for (unsigned k = 0; k < width; ++k) values[j * width + k] = 0.0F;
      }
    }
    float sum = 0.0F;
#pragma unroll
    for (unsigned k = 0; k < kInFlight; ++k) sum += values[k];
    Moments step{static_cast<float>(n), sum / static_cast<float>(n), 0.0F};
#pragma unroll
    for (unsigned k = 0; k < kInFlight; ++k) {
      const float apart = k < n ? values[k] - step.mean : 0.0F;
      step.squares += apart * apart;
    }
    mine = merge(mine, step);
  });

  __shared__ Moments of_warp[kWarps];
  mine = merge_warp(mine);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  mine = merge_warp(threadIdx.x < kWarps ? of_warp[threadIdx.x] : Moments{0.0F, 0.0F, 0.0F});
  if (threadIdx.x == 0) parts[at.channel * split.shares + at.index] = make_float2(mine.mean, mine.squares);
}

// A channel's statistics out of its shares', by one warp; its first lane has them.
__device__ inline Moments channel_statistics(const float2* parts, const Split& split, int64_t channel,
                                             unsigned counted) {
  Moments mine{0.0F, 0.0F, 0.0F};
  for (unsigned i = threadIdx.x; i < split.shares; i += 32) {
    const unsigned begin = i * split.share;
    const unsigned n = counted > begin ? min(counted - begin, split.share) : 0;
    const float2 part = parts[channel * split.shares + i];
    mine = merge(mine, {static_cast<float>(n), part.x, part.y});
  }
  return merge_warp(mine);
}

// The ops on y at the end.
template <class T>
struct Ending {
  const T* residual = nullptr;
  bool relu = false;
};

// The normalisation of a channel's elements: y = (x - mean) * factor + beta.
struct Affine {
  float mean;
  float factor;
  float beta;
};

// y of a share; y may be x.
template <unsigned width, class T>
__device__ __forceinline__ void apply(const T* x, T* y, const Affine& by, const Ending<T>& ending, const Share& at,
                                      const Split& split) {
  for_steps<width>(at.begin, at.end, [&](unsigned first) {
    int64_t address[kInFlight / width];
    float values[kInFlight];
    float residual[kInFlight] = {};
#pragma unroll
    for (unsigned j = 0; j < kInFlight / width; ++j) {
      const unsigned i = first + j * kBlock * width;
      if (i >= at.end) break;
      address[j] = address_of(split, at.channel, i);
      load<width>(x + address[j], values + j * width);
      if (ending.residual != nullptr) load<width>(ending.residual + address[j], residual + j * width);
    }
#pragma unroll
    for (unsigned j = 0; j < kInFlight / width; ++j) {
      if (first + j * kBlock * width >= at.end) break;
#pragma unroll
      for (unsigned k = j * width; k < (j + 1) * width; ++k) {
        values[k] = finish<T>((values[k] - by.mean) * by.factor + by.beta, residual[k], ending.relu);
      }
      store<width>(y + address[j], values + j * width);
    }
  });
}

template <unsigned width, class T>
__device__ void clear(T* y, const Ending<T>& ending, unsigned begin, const Share& at, const Split& split) {
  for (unsigned i = begin + threadIdx.x * width; i < at.end; i += kBlock * width) {
    const int64_t address = address_of(split, at.channel, i);
    float zeros[width] = {};
    if (ending.residual != nullptr) load<width>(ending.residual + address, zeros);
#pragma unroll
    for (unsigned k = 0; k < width; ++k) zeros[k] = finish<T>(0.0F, zeros[k], ending.relu);
    store<width>(y + address, zeros);
  }
}

template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock) normalise(Forward<T> f, Split split) {
  const Share at = share_of(split, gridDim.x - 1 - blockIdx.x);
  const unsigned counted = counted_elements(f.count, split);
  __shared__ Affine by;
  if (threadIdx.x < 32) {
    const Moments all = channel_statistics(f.parts, split, at.channel, counted);
    if (threadIdx.x == 0) {
      const bool known = counted > 0;
      const float rstd = known ? 1.0F / sqrtf(all.squares / all.n + f.epsilon) : 0.0F;
      by = {all.mean, rstd * f.gamma[at.channel], f.beta[at.channel]};
      if (at.index == 0) {
        f.mean[at.channel] = all.mean;  // 0 of nothing
        f.rstd[at.channel] = rstd;
      }
      if (at.index == 0 && known) {
        const float keep = 1.0F - f.momentum;
        const float variance = all.squares / fmaxf(all.n - 1.0F, 1.0F);
        f.running_mean[at.channel] = keep * f.running_mean[at.channel] + f.momentum * all.mean;
        f.running_var[at.channel] = keep * f.running_var[at.channel] + f.momentum * variance;
      }
    }
  }
  __syncthreads();
  if (counted == 0) {
    clear<width, T>(f.y, {f.residual, f.relu}, at.begin, at, split);
  } else {
    const Affine affine = by;  // in registers
    apply<width, T>(f.x, f.y, affine, {f.residual, f.relu}, at, split);
  }
}

template <class T>
struct Inference {
  const T* x;
  const float* gamma;
  const float* beta;
  const float* mean;
  const float* variance;
  T* y;  // may be x
  float epsilon;
};

template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock) normalise_by_given(Inference<T> f, Split split) {
  const Share at = share_of(split, blockIdx.x);
  const float rstd = 1.0F / sqrtf(f.variance[at.channel] + f.epsilon);
  apply<width, T>(f.x, f.y, {f.mean[at.channel], rstd * f.gamma[at.channel], f.beta[at.channel]}, {}, at, split);
}

// dy and x of a step, of which the elements before `end` are there; the others are left. `again`: what goes on through
// the ReLU is there already, where it is wanted.
template <unsigned width, class T>
__device__ __forceinline__ void load_step(const Backward<T>& b, const Split& split, int64_t channel, unsigned first,
                                          unsigned end, bool again, float* dy, float* x, int64_t* address) {
#pragma unroll
  for (unsigned j = 0; j < kInFlight / width; ++j) {
    const unsigned i = first + j * kBlock * width;
    if (i >= end) break;
    address[j] = address_of(split, channel, i);
    if (again && b.masked != nullptr) {
      load<width>(b.masked + address[j], dy + j * width);
    } else {
      load_gradient<width>(b, address[j], dy + j * width);
    }
    load<width>(b.x + address[j], x + j * width);
  }
}

template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock) reduce_gradients(Backward<T> b, Split split) {
  const Share at = share_of(split, blockIdx.x);
  const unsigned counted = counted_elements(b.count, split);
  const unsigned end = b.masked != nullptr ? at.end : min(at.end, counted);
  const float mean = b.mean[at.channel];
  float2 mine = make_float2(0.0F, 0.0F);
  for_steps<width>(at.begin, end, [&](unsigned first) {
    int64_t address[kInFlight / width];
    float dy[kInFlight], x[kInFlight];
    load_step<width>(b, split, at.channel, first, end, false, dy, x, address);
#pragma unroll
    for (unsigned j = 0; j < kInFlight / width; ++j) {
      if (first + j * kBlock * width >= end) break;
      if (b.masked != nullptr) store<width>(b.masked + address[j], dy + j * width);
      if (first + j * kBlock * width >= counted) continue;
#pragma unroll
      for (unsigned k = j * width; k < (j + 1) * width; ++k) {
        mine.x += dy[k];
        mine.y += dy[k] * (x[k] - mean);
      }
    }
  });

  __shared__ float2 of_warp[kWarps];
  mine = sum_warp(mine);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  mine = sum_warp(threadIdx.x < kWarps ? of_warp[threadIdx.x] : make_float2(0.0F, 0.0F));
  if (threadIdx.x == 0) b.parts[at.channel * split.shares + at.index] = mine;
}

// dx = factor (dy - offset - (x - mean) slope).
struct Slope {
  float factor;
  float offset;
  float slope;
};

template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock) flow_back(Backward<T> b, Split split) {
  const Share at = share_of(split, gridDim.x - 1 - blockIdx.x);
  const unsigned counted = counted_elements(b.count, split);
  const float mean = b.mean[at.channel];
  __shared__ Slope of_channel;
  if (threadIdx.x < 32) {
    float2 sums = make_float2(0.0F, 0.0F);
    for (unsigned i = threadIdx.x; i < split.shares; i += 32) {
      const float2 part = b.parts[at.channel * split.shares + i];
      sums.x += part.x;
      sums.y += part.y;
    }
    sums = sum_warp(sums);
    if (threadIdx.x == 0) {
      const float rstd = b.rstd[at.channel];
      const float dgamma = sums.y * rstd;
      const auto n = static_cast<float>(max(counted, 1U));
      of_channel = {b.gamma[at.channel] * rstd, sums.x / n, dgamma * rstd / n};
      if (at.index == 0) {
        b.dgamma[at.channel] = dgamma;
        b.dbeta[at.channel] = sums.x;
      }
    }
  }
  __syncthreads();
  const Slope by = of_channel;  // in registers
  const unsigned end = min(at.end, counted);
  for_steps<width>(at.begin, end, [&](unsigned first) {
    int64_t address[kInFlight / width];
    float dy[kInFlight], x[kInFlight];
    load_step<width>(b, split, at.channel, first, end, true, dy, x, address);
#pragma unroll
    for (unsigned j = 0; j < kInFlight / width; ++j) {
      if (first + j * kBlock * width >= end) break;
#pragma unroll
      for (unsigned k = j * width; k < (j + 1) * width; ++k) {
        dy[k] = by.factor * (dy[k] - by.offset - (x[k] - mean) * by.slope);
      }
      store<width>(b.dx + address[j], dy + j * width);
    }
  });
  clear<width, T>(b.dx, {}, max(at.begin, counted), at, split);  // the rows that do not count
}

}  // namespace gpunn::cuda_tiled::passes
