// Batch norm of channels-last images: of the matrix [rows, channels] that such images are, a row a pixel.
//
// Threads side by side take channels side by side, four each, and the threads of a block rows one below the other.
// A block has some channels in a share of the rows; there are as many blocks as the GPU holds at once, so that none
// waits for another. Three kernels each way: the first reduces each share, a small one puts the shares of a channel
// together, in their order, and the last writes, going through each share from its end to its beginning, since what was
// read last is still in the cache. Means and squares are merged as in normalization_passes.cuh.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "common/normalization.hpp"
#include "moments.cuh"
#include "normalization/channel_shares.cuh"
#include "normalization/normalization_passes.cuh"
#include "normalization/normalization_resident.hpp"

namespace gpunn::cuda_tiled::channels_last {

using passes::Inference;

inline constexpr unsigned kMostColumns = 32;      // of a block's threads
inline constexpr unsigned kWidth = 4;             // channels of a thread, where all are aligned
inline constexpr unsigned kRowsRead = 4;          // rows that a thread has in flight, reading one tensor or two
inline constexpr unsigned kGradientRowsRead = 2;  // and reading up to four
inline constexpr unsigned kResident = 4;          // blocks that a multiprocessor holds
inline constexpr unsigned kJoined = 8;            // channels that a block puts the shares together of
inline constexpr unsigned kPartsRead = 16;        // shares of a channel that a thread has in flight

// The matrix, and who has which part of it.
struct Matrix {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t pixels = 1;  // rows of an image
  int64_t share = 1;   // rows of a share; the last may have fewer
  unsigned shares = 1;
  unsigned columns = 1;  // of a block's threads, a power of two
};

// The matrix in packs of `width` channels.
inline Matrix in_packs(Matrix matrix, unsigned width) {
  matrix.columns = 1;
  while (matrix.columns < kMostColumns && matrix.columns * width < matrix.channels) matrix.columns *= 2;
  return matrix;
}

inline Matrix matrix_of(const backends::BatchNorm& shape) {
  constexpr int64_t kBlocks = 132 * kResident;
  Matrix matrix = in_packs({.rows = shape.rows * shape.size, .channels = shape.channels, .pixels = shape.size}, kWidth);
  // What a block reads at once; its share is a multiple of that.
  const int64_t at_once = kBlock / matrix.columns * kRowsRead;
  const int64_t tiles = cuda::divide_up(shape.channels, int64_t{matrix.columns} * kWidth);
  const int64_t shares = std::max<int64_t>(1, kBlocks / tiles);
  matrix.share = std::max<int64_t>(1, cuda::divide_up(cuda::divide_up(matrix.rows, shares), at_once)) * at_once;
  matrix.shares = static_cast<unsigned>(std::max<int64_t>(1, cuda::divide_up(matrix.rows, matrix.share)));
  return matrix;
}

// How many of the rows enter the statistics. What the device holds may be anything.
inline __device__ int64_t counted_rows(const int32_t* count, const Matrix& matrix) {
  if (count == nullptr) return matrix.rows;
  return min(static_cast<int64_t>(max(*count, 0)) * matrix.pixels, matrix.rows);
}

// What a thread has: `width` channels from `channel` on, and each step-th row from `begin` on.
struct Place {
  int64_t channel;
  int64_t begin;
  int64_t end;  // of the share
  int64_t step;
  unsigned row;  // of the block's threads

  // Where the last `rows` rows begin that are taken together.
  __device__ int64_t last(unsigned rows) const {
    return end <= begin ? begin - 1 : begin + (end - 1 - begin) / (step * rows) * (step * rows);
  }
};

template <unsigned width>
__device__ Place place_of(const Matrix& matrix) {
  const unsigned row = threadIdx.x / matrix.columns;
  const int64_t begin = blockIdx.y * matrix.share;
  return {.channel = (static_cast<int64_t>(blockIdx.x) * matrix.columns + threadIdx.x % matrix.columns) * width,
          .begin = begin + row,
          .end = min(begin + matrix.share, matrix.rows),
          .step = kBlock / matrix.columns,
          .row = row};
}

template <unsigned width, class T>
__device__ __forceinline__ Pack<T, width> read_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, width>*>(from);
}

// Mean and squares of every share.
template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock, kResident)
    reduce_statistics(const T* x, const int32_t* count, float2* parts, Matrix matrix) {
  const Place at = place_of<width>(matrix);
  const bool active = at.channel < matrix.channels;
  const int64_t end = active ? min(at.end, counted_rows(count, matrix)) : 0;
  float n = 0.0F;
  float mean[width] = {};
  float squares[width] = {};
  for (int64_t first = at.begin; first < end; first += at.step * kRowsRead) {
    Pack<T, width> values[kRowsRead];
    unsigned read = 0;
#pragma unroll
    for (unsigned j = 0; j < kRowsRead; ++j) {
      const int64_t row = first + j * at.step;
      values[j] = {};
      if (row >= end) continue;
      values[j] = read_pack<width>(x + row * matrix.channels + at.channel);
      ++read;
    }
    const auto more = static_cast<float>(read);
    const float share = 1.0F / more;
    const float part = n == 0.0F ? 1.0F : more / (n + more);
    const float before = n == 0.0F ? 0.0F : n * part;
#pragma unroll
    for (unsigned k = 0; k < width; ++k) {
      float sum = 0.0F;
#pragma unroll
      for (unsigned j = 0; j < kRowsRead; ++j) sum += static_cast<float>(values[j].values[k]);
      const float here = sum * share;
      float around = 0.0F;
#pragma unroll
      for (unsigned j = 0; j < kRowsRead; ++j) {
        const float apart = j < read ? static_cast<float>(values[j].values[k]) - here : 0.0F;
        around += apart * apart;
      }
      const float apart = here - mean[k];
      squares[k] += around;
      if (n != 0.0F) squares[k] += apart * apart * before;
      mean[k] += apart * part;
    }
    n += more;
  }

  __shared__ float of_n[kBlock];
  __shared__ float of_mean[width][kBlock];
  __shared__ float of_squares[width][kBlock];
  of_n[threadIdx.x] = n;
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    of_mean[k][threadIdx.x] = mean[k];
    of_squares[k][threadIdx.x] = squares[k];
  }
  for (unsigned half = kBlock / matrix.columns / 2; half > 0; half /= 2) {
    __syncthreads();
    if (at.row >= half) continue;
    const unsigned other = threadIdx.x + half * matrix.columns;
    const float mine = of_n[threadIdx.x];
#pragma unroll
    for (unsigned k = 0; k < width; ++k) {
      const Moments both = merge({mine, of_mean[k][threadIdx.x], of_squares[k][threadIdx.x]},
                                 {of_n[other], of_mean[k][other], of_squares[k][other]});
      of_mean[k][threadIdx.x] = both.mean;
      of_squares[k][threadIdx.x] = both.squares;
    }
    of_n[threadIdx.x] = mine + of_n[other];
  }
  if (at.row > 0 || !active) return;
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    parts[blockIdx.y * matrix.channels + at.channel + k] =
        make_float2(of_mean[k][threadIdx.x], of_squares[k][threadIdx.x]);
  }
}

// The channel of a thread that puts shares together: kJoined side by side in a block, each with its shares dealt out.
inline __device__ int64_t joined_channel() {
  return static_cast<int64_t>(blockIdx.x) * kJoined + threadIdx.x % kJoined;
}

// Calls visit(i, the channel's part of share i) for the thread's shares, in their order.
template <class Visit>
__device__ void for_parts(const float2* parts, const Matrix& matrix, int64_t channel, const Visit& visit) {
  constexpr unsigned kStep = kBlock / kJoined;
  if (channel >= matrix.channels) return;
  for (unsigned first = threadIdx.x / kJoined; first < matrix.shares; first += kStep * kPartsRead) {
    float2 read[kPartsRead];
#pragma unroll
    for (unsigned j = 0; j < kPartsRead; ++j) {
      const unsigned i = first + j * kStep;
      if (i < matrix.shares) read[j] = parts[i * matrix.channels + channel];
    }
#pragma unroll
    for (unsigned j = 0; j < kPartsRead; ++j) {
      const unsigned i = first + j * kStep;
      if (i < matrix.shares) visit(i, read[j]);
    }
  }
}

// Reduces what the threads of a channel have, in a fixed order; the first has the result.
template <class Value, class Both>
__device__ Value reduce_joined(Value mine, const Both& both) {
  __shared__ Value of_thread[kBlock];
  of_thread[threadIdx.x] = mine;
  for (unsigned half = kBlock / kJoined / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x / kJoined >= half) continue;
    mine = both(mine, of_thread[threadIdx.x + half * kJoined]);
    of_thread[threadIdx.x] = mine;
  }
  return mine;
}

// Of nothing the mean is 0, and the running statistics stay as they are.
template <class T>
__device__ __forceinline__ void keep_statistics(const Forward<T>& f, int64_t channel, const Moments& all) {
  const bool known = all.n > 0.0F;
  f.mean[channel] = all.mean;
  f.rstd[channel] = known ? 1.0F / sqrtf(all.squares / all.n + f.epsilon) : 0.0F;
  if (!known) return;
  const float keep = 1.0F - f.momentum;
  const float variance = all.squares / fmaxf(all.n - 1.0F, 1.0F);
  f.running_mean[channel] = keep * f.running_mean[channel] + f.momentum * all.mean;
  f.running_var[channel] = keep * f.running_var[channel] + f.momentum * variance;
}

template <class T>
__global__ void __launch_bounds__(kBlock, kResident) join_statistics(Forward<T> f, Matrix matrix) {
  const int64_t channel = joined_channel();
  const int64_t counted = counted_rows(f.count, matrix);
  Moments mine{0.0F, 0.0F, 0.0F};
  for_parts(f.parts, matrix, channel, [&](unsigned i, float2 part) {
    const int64_t n = min(max(counted - i * matrix.share, int64_t{0}), matrix.share);
    mine = merge(mine, {static_cast<float>(n), part.x, part.y});
  });
  mine = reduce_joined(mine, [](const Moments& a, const Moments& b) { return merge(a, b); });
  if (threadIdx.x >= kJoined || channel >= matrix.channels) return;
  keep_statistics(f, channel, mine);
}

// y = finish((x - mean) * factor + beta); y may be x.
template <unsigned width, class T>
__device__ void apply(const T* x, const T* residual, bool relu, T* y, const float (&mean)[width],
                      const float (&factor)[width], const float (&beta)[width], bool known, const Place& at,
                      const Matrix& matrix) {
  for (int64_t first = at.last(kRowsRead); first >= at.begin; first -= at.step * kRowsRead) {
    Pack<T, width> values[kRowsRead], more[kRowsRead];
#pragma unroll
    for (unsigned j = 0; j < kRowsRead; ++j) {
      const int64_t row = first + j * at.step;
      more[j] = {};
      if (row >= at.end) continue;
      values[j] = read_pack<width>(x + row * matrix.channels + at.channel);
      if (residual != nullptr) more[j] = read_pack<width>(residual + row * matrix.channels + at.channel);
    }
#pragma unroll
    for (unsigned j = 0; j < kRowsRead; ++j) {
      const int64_t row = first + j * at.step;
      if (row >= at.end) continue;
      float results[width];
#pragma unroll
      for (unsigned k = 0; k < width; ++k) {
        const auto value = static_cast<float>(values[j].values[k]);
        const float normal = known ? (value - mean[k]) * factor[k] + beta[k] : 0.0F;
        results[k] = finish<T>(normal, static_cast<float>(more[j].values[k]), relu);
      }
      store<width>(y + row * matrix.channels + at.channel, results);
    }
  }
}

template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock, kResident) normalise(Forward<T> f, Matrix matrix) {
  const Place at = place_of<width>(matrix);
  if (at.channel >= matrix.channels) return;
  float mean[width], factor[width], beta[width];
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    mean[k] = f.mean[at.channel + k];
    factor[k] = f.rstd[at.channel + k] * f.gamma[at.channel + k];
    beta[k] = f.beta[at.channel + k];
  }
  const bool known = counted_rows(f.count, matrix) > 0;
  apply<width, T>(f.x, f.residual, f.relu, f.y, mean, factor, beta, known, at, matrix);
}

template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock, kResident) normalise_by_given(Inference<T> f, Matrix matrix) {
  const Place at = place_of<width>(matrix);
  if (at.channel >= matrix.channels) return;
  float mean[width], factor[width], beta[width];
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    mean[k] = f.mean[at.channel + k];
    factor[k] = 1.0F / sqrtf(f.variance[at.channel + k] + f.epsilon) * f.gamma[at.channel + k];
    beta[k] = f.beta[at.channel + k];
  }
  apply<width, T>(f.x, nullptr, false, f.y, mean, factor, beta, true, at, matrix);
}

// dy and x of `width` channels of a row, and what dy is made of.
template <unsigned width, class T>
struct GradientRow {
  Pack<T, width> first, more, relu_y, x;

  // `masked`: dy is there already, as it goes on through the ReLU.
  __device__ __forceinline__ void read(const Backward<T>& b, int64_t address, bool masked) {
    first = read_pack<width>((masked ? b.masked : b.dy) + address);
    if (!masked && b.more_dy != nullptr) more = read_pack<width>(b.more_dy + address);
    if (!masked && b.relu_y != nullptr) relu_y = read_pack<width>(b.relu_y + address);
    x = read_pack<width>(b.x + address);
  }
  __device__ __forceinline__ float dy(const Backward<T>& b, unsigned k, bool masked) const {
    auto value = static_cast<float>(first.values[k]);
    if (masked) return value;
    if (b.more_dy != nullptr) value = rounded_to<T>(value + static_cast<float>(more.values[k]));
    if (b.relu_y != nullptr) value = static_cast<float>(relu_y.values[k]) > 0.0F ? value : 0.0F;
    return value;
  }
};

// Of every share the sums of dy and of dy (x - mean).
template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock, kResident) reduce_gradients(Backward<T> b, Matrix matrix) {
  const Place at = place_of<width>(matrix);
  const bool active = at.channel < matrix.channels;
  const int64_t counted = counted_rows(b.count, matrix);
  const int64_t end = !active ? 0 : b.masked != nullptr ? at.end : min(at.end, counted);
  float mean[width];
#pragma unroll
  for (unsigned k = 0; k < width; ++k) mean[k] = active ? b.mean[at.channel + k] : 0.0F;
  float sums[width] = {};
  float products[width] = {};
  for (int64_t first = at.begin; first < end; first += at.step * kGradientRowsRead) {
    GradientRow<width, T> rows[kGradientRowsRead];
#pragma unroll
    for (unsigned j = 0; j < kGradientRowsRead; ++j) {
      const int64_t row = first + j * at.step;
      if (row < end) rows[j].read(b, row * matrix.channels + at.channel, false);
    }
#pragma unroll
    for (unsigned j = 0; j < kGradientRowsRead; ++j) {
      const int64_t row = first + j * at.step;
      if (row >= end) continue;
      float dy[width];
#pragma unroll
      for (unsigned k = 0; k < width; ++k) dy[k] = rows[j].dy(b, k, false);
      if (b.masked != nullptr) store<width>(b.masked + row * matrix.channels + at.channel, dy);
      if (row >= counted) continue;
#pragma unroll
      for (unsigned k = 0; k < width; ++k) {
        sums[k] += dy[k];
        products[k] += dy[k] * (static_cast<float>(rows[j].x.values[k]) - mean[k]);
      }
    }
  }

  __shared__ float of_sums[width][kBlock];
  __shared__ float of_products[width][kBlock];
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    of_sums[k][threadIdx.x] = sums[k];
    of_products[k][threadIdx.x] = products[k];
  }
  for (unsigned half = kBlock / matrix.columns / 2; half > 0; half /= 2) {
    __syncthreads();
    if (at.row >= half) continue;
    const unsigned other = threadIdx.x + half * matrix.columns;
#pragma unroll
    for (unsigned k = 0; k < width; ++k) {
      of_sums[k][threadIdx.x] += of_sums[k][other];
      of_products[k][threadIdx.x] += of_products[k][other];
    }
  }
  if (at.row > 0 || !active) return;
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    b.parts[blockIdx.y * matrix.channels + at.channel + k] =
        make_float2(of_sums[k][threadIdx.x], of_products[k][threadIdx.x]);
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock, kResident) join_gradients(Backward<T> b, Matrix matrix) {
  const int64_t channel = joined_channel();
  float2 mine = make_float2(0.0F, 0.0F);
  for_parts(b.parts, matrix, channel, [&](unsigned, float2 part) {
    mine.x += part.x;
    mine.y += part.y;
  });
  mine = reduce_joined(mine, [](float2 a, float2 other) { return make_float2(a.x + other.x, a.y + other.y); });
  if (threadIdx.x >= kJoined || channel >= matrix.channels) return;
  b.dgamma[channel] = mine.y * b.rstd[channel];
  b.dbeta[channel] = mine.x;
}

template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock, kResident) flow_back(Backward<T> b, Matrix matrix) {
  const Place at = place_of<width>(matrix);
  if (at.channel >= matrix.channels) return;
  const int64_t counted = counted_rows(b.count, matrix);
  const auto n = static_cast<float>(max(counted, int64_t{1}));
  // dx = factor (dy - offset - (x - mean) slope)
  float mean[width], factor[width], offset[width], slope[width];
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    const float rstd = b.rstd[at.channel + k];
    mean[k] = b.mean[at.channel + k];
    factor[k] = b.gamma[at.channel + k] * rstd;
    offset[k] = b.dbeta[at.channel + k] / n;
    slope[k] = b.dgamma[at.channel + k] * rstd / n;
  }
  const bool masked = b.masked != nullptr;
  for (int64_t first = at.last(kGradientRowsRead); first >= at.begin; first -= at.step * kGradientRowsRead) {
    GradientRow<width, T> rows[kGradientRowsRead];
#pragma unroll
    for (unsigned j = 0; j < kGradientRowsRead; ++j) {
      const int64_t row = first + j * at.step;
      if (row < at.end) rows[j].read(b, row * matrix.channels + at.channel, masked);
    }
#pragma unroll
    for (unsigned j = 0; j < kGradientRowsRead; ++j) {
      const int64_t row = first + j * at.step;
      if (row >= at.end) continue;
      float dx[width];
#pragma unroll
      for (unsigned k = 0; k < width; ++k) {
        const float apart = static_cast<float>(rows[j].x.values[k]) - mean[k];
        const float flows = factor[k] * (rows[j].dy(b, k, masked) - offset[k] - apart * slope[k]);
        dx[k] = row < counted ? flows : 0.0F;  // of rows that do not count
      }
      store<width>(b.dx + row * matrix.channels + at.channel, dx);
    }
  }
}

}  // namespace gpunn::cuda_tiled::channels_last
