// Batch norm of channels-last images, as a matrix [rows, channels] with one row a pixel. Instance norm is that of
// several such matrices, an image each: blockIdx.z is the image.
//
// Neighbouring threads process neighbouring channels, 16 bytes each, and a thread block processes several rows at once.
// There are as many blocks as the GPU holds at once, and each takes every n-th piece of the rows. Each pass has three
// kernels. The first reduces each block's share of the rows. The second, a small one, merges the shares of each channel
// in their order. The last writes the result and goes from the last piece to the first, since the pieces read last are
// still in the cache. Means and squares are merged as in normalization_passes.cuh.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

#include "common/normalization.hpp"
#include "dependent_launch.cuh"
#include "moments.cuh"
#include "normalization/channel_shares.cuh"
#include "normalization/normalization_passes.cuh"
#include "normalization/normalization_resident.hpp"

namespace gpunn::cuda_tiled::channels_last {

using passes::Inference;

inline constexpr unsigned kMostColumns = 32;  // of a block's threads
template <class T>
inline constexpr unsigned kWidth = 16 / sizeof(T);  // channels of a thread, where all are aligned
inline constexpr unsigned kRowsRead = 4;            // rows that a thread has in flight, reading one tensor
inline constexpr unsigned kFewRowsRead = 2;         // and reading more
inline constexpr unsigned kResident = 4;            // blocks that a multiprocessor holds
inline constexpr unsigned kGradientResident = 3;    // and of those that read more
inline constexpr unsigned kJoined = 8;              // channels that a block puts the shares together of
inline constexpr unsigned kPartsRead = 16;          // shares of a channel that a thread has in flight

// The matrix, and who has which part of it.
struct Matrix {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t pixels = 1;  // rows of an image
  unsigned shares = 1;
  unsigned columns = 1;  // of a block's threads, a power of two

  __host__ __device__ unsigned lines() const { return kBlock / columns; }  // of a block's threads
};

// The matrix in packs of `width` channels, for kernels that read `rows` rows at once, `resident` blocks a
// multiprocessor, which `images` such matrices share.
inline Matrix matrix_of(const backends::BatchNorm& shape, unsigned width, unsigned rows, unsigned resident,
                        int64_t images = 1) {
  Matrix matrix{.rows = shape.rows * shape.size, .channels = shape.channels, .pixels = shape.size};
  while (matrix.columns < kMostColumns && matrix.columns * width < matrix.channels) matrix.columns *= 2;
  const int64_t tiles = cuda::divide_up(shape.channels, int64_t{matrix.columns} * width);
  const int64_t pieces = cuda::divide_up(matrix.rows, int64_t{matrix.lines()} * rows);
  const int64_t blocks = std::max<int64_t>(1, int64_t{132} * resident / (tiles * images));
  matrix.shares = static_cast<unsigned>(std::clamp<int64_t>(pieces, 1, blocks));
  return matrix;
}

// Each kernel begins before the one in front of it has ended, and lets the next one begin.
inline __device__ void begin_kernel() {
  let_next_kernel_start();
  wait_for_kernel_before();
}

// The tensors from this block's image on, where each image has statistics of its own.
template <class T>
__device__ __forceinline__ void go_to_image(Forward<T>& f, const Matrix& matrix) {
  const int64_t image = blockIdx.z, elements = image * matrix.rows * matrix.channels;
  f.x += elements;
  f.y += elements;
  f.parts += image * matrix.shares * matrix.channels;
  f.mean += image * matrix.channels;
  f.rstd += image * matrix.channels;
}

template <class T>
__device__ __forceinline__ void go_to_image(Backward<T>& b, const Matrix& matrix) {
  const int64_t image = blockIdx.z, elements = image * matrix.rows * matrix.channels;
  b.dy += elements;
  b.x += elements;
  b.dx += elements;
  b.parts += image * matrix.shares * matrix.channels;
  b.mean += image * matrix.channels;
  b.rstd += image * matrix.channels;
  b.dgamma += image * matrix.channels;
  b.dbeta += image * matrix.channels;
}

// How many of the rows enter the statistics. What the device holds may be anything.
inline __device__ int64_t counted_rows(const int32_t* count, const Matrix& matrix) {
  if (count == nullptr) return matrix.rows;
  return min(static_cast<int64_t>(max(*count, 0)) * matrix.pixels, matrix.rows);
}

// The work of a thread: `width` channels from `channel` on, and in each piece the rows from its first on, `lines`
// apart.
struct Place {
  int64_t channel;
  int64_t begin;  // the thread's first row of the first piece
  int64_t step;   // from a piece to the next
  unsigned line;

  // The thread's first row of the last piece that begins before `end`; a step before the first where there is none.
  __device__ int64_t last(int64_t end) const {
    const int64_t piece = begin - line;
    return piece >= end ? begin - step : begin + (end - 1 - piece) / step * step;
  }
};

template <unsigned width, unsigned rows>
__device__ Place place_of(const Matrix& matrix) {
  const unsigned line = threadIdx.x / matrix.columns;
  const int64_t piece = int64_t{matrix.lines()} * rows;
  return {.channel = (static_cast<int64_t>(blockIdx.x) * matrix.columns + threadIdx.x % matrix.columns) * width,
          .begin = blockIdx.y * piece + line,
          .step = matrix.shares * piece,
          .line = line};
}

// How many of the first `counted` rows a share has, in pieces of `rows` rows a thread.
inline __device__ int64_t rows_of_share(const Matrix& matrix, int64_t counted, unsigned share, unsigned rows) {
  const int64_t piece = int64_t{matrix.lines()} * rows;
  const int64_t pieces = counted / piece, turn = pieces % matrix.shares;
  return (pieces / matrix.shares + (share < turn ? 1 : 0)) * piece + (share == turn ? counted - pieces * piece : 0);
}

// `width` numbers of T as one access moves them. Two of 16 bits stay in a register; as numbers they would take two.
template <class T, unsigned width>
struct Numbers {
  static constexpr bool kPairs = sizeof(T) == 2 && width % 2 == 0;
  struct alignas(sizeof(T) * width) Words {
    uint32_t words[kPairs ? width / 2 : 1];
  };
  std::conditional_t<kPairs, Words, Pack<T, static_cast<int>(width)>> bits;

  __device__ __forceinline__ float operator[](unsigned k) const {
    if constexpr (kPairs) {
      const uint32_t word = bits.words[k / 2];
      if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return __uint_as_float(k % 2 == 0 ? word << 16U : word & 0xFFFF0000U);
      else
        return __half2float(__ushort_as_half(static_cast<uint16_t>(k % 2 == 0 ? word : word >> 16U)));
    } else {
      return static_cast<float>(bits.values[k]);
    }
  }
};

template <unsigned width, class T>
__device__ __forceinline__ Numbers<T, width> read_numbers(const T* from) {
  return {*reinterpret_cast<const decltype(Numbers<T, width>::bits)*>(from)};
}

// A load of data that is not read again: it is the first to be evicted from the cache.
template <unsigned width, class T>
__device__ __forceinline__ Numbers<T, width> read_last(const T* from) {
  Numbers<T, width> numbers;
  if constexpr (sizeof(numbers) == sizeof(uint4)) {
    const uint4 words = __ldcs(reinterpret_cast<const uint4*>(from));
    memcpy(&numbers, &words, sizeof(numbers));
  } else {
    numbers = read_numbers<width>(from);
  }
  return numbers;
}

// Mean and squares of every share.
template <unsigned width, class T, bool by_image = false>
__global__ void __launch_bounds__(kBlock, kResident)
    reduce_statistics(const T* x, const int32_t* count, float2* parts, Matrix matrix) {
  begin_kernel();
  if constexpr (by_image) {
    x += int64_t{blockIdx.z} * matrix.rows * matrix.channels;
    parts += int64_t{blockIdx.z} * matrix.shares * matrix.channels;
  }
  const Place at = place_of<width, kRowsRead>(matrix);
  const unsigned lines = matrix.lines();
  const bool active = at.channel < matrix.channels;
  const int64_t end = active ? counted_rows(count, matrix) : 0;
  // An image has few numbers, whose mean may be far larger than what they differ by: they are taken from its first.
  const Numbers<T, width> pivot = by_image && active ? read_numbers<width>(x + at.channel) : Numbers<T, width>{};
  float n = 0.0F;
  float mean[width] = {};
  float squares[width] = {};
  for (int64_t first = at.begin; first < end; first += at.step) {
    Numbers<T, width> values[kRowsRead];
    unsigned read = 0;
#pragma unroll
    for (unsigned j = 0; j < kRowsRead; ++j) {
      const int64_t row = first + j * lines;
      values[j] = {};
      if (row >= end) continue;
      values[j] = read_numbers<width>(x + row * matrix.channels + at.channel);
      ++read;
    }
    const auto more = static_cast<float>(read);
    const float share = 1.0F / more;
    const float part = n == 0.0F ? 1.0F : more / (n + more);
    const float before = n == 0.0F ? 0.0F : n * part;
#pragma unroll
    for (unsigned k = 0; k < width; ++k) {
      const auto value = [&](unsigned j) {
        if constexpr (by_image) return j < read ? values[j][k] - pivot[k] : 0.0F;
        return values[j][k];
      };
      float sum = 0.0F;
#pragma unroll
      for (unsigned j = 0; j < kRowsRead; ++j) sum += value(j);
      const float here = sum * share;
      float around = 0.0F;
#pragma unroll
      for (unsigned j = 0; j < kRowsRead; ++j) {
        const float apart = j < read ? value(j) - here : 0.0F;
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
  for (unsigned half = lines / 2; half > 0; half /= 2) {
    __syncthreads();
    if (at.line >= half) continue;
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
  if (at.line > 0 || !active) return;
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

// Without rows the mean is 0, and the running statistics do not change.
template <class T>
__device__ __forceinline__ void keep_statistics(const Forward<T>& f, int64_t channel, const Moments& all) {
  const bool known = all.n > 0.0F;
  f.mean[channel] = all.mean;
  f.rstd[channel] = known ? 1.0F / sqrtf(all.squares / all.n + f.epsilon) : 0.0F;
  if (!known || f.running_mean == nullptr) return;
  const float keep = 1.0F - f.momentum;
  const float variance = all.squares / fmaxf(all.n - 1.0F, 1.0F);
  f.running_mean[channel] = keep * f.running_mean[channel] + f.momentum * all.mean;
  f.running_var[channel] = keep * f.running_var[channel] + f.momentum * variance;
}

template <class T, bool by_image = false>
__global__ void __launch_bounds__(kBlock, kResident) join_statistics(Forward<T> f, Matrix matrix) {
  begin_kernel();
  if constexpr (by_image) go_to_image(f, matrix);
  const int64_t channel = joined_channel();
  const int64_t counted = counted_rows(f.count, matrix);
  Moments mine{0.0F, 0.0F, 0.0F};
  for_parts(f.parts, matrix, channel, [&](unsigned i, float2 part) {
    const int64_t n = rows_of_share(matrix, counted, i, kRowsRead);
    mine = merge(mine, {static_cast<float>(n), part.x, part.y});
  });
  mine = reduce_joined(mine, [](const Moments& a, const Moments& b) { return merge(a, b); });
  if (threadIdx.x >= kJoined || channel >= matrix.channels) return;
  if constexpr (by_image) mine.mean += static_cast<float>(f.x[channel]);  // the pivot
  keep_statistics(f, channel, mine);
}

// y = finish((x - mean) * factor + beta); y may be x.
template <unsigned width, bool with_residual, class T>
__device__ void apply(const T* x, const T* residual, bool relu, T* y, const float (&mean)[width],
                      const float (&factor)[width], const float (&beta)[width], bool known, const Matrix& matrix) {
  constexpr unsigned kRows = with_residual ? kFewRowsRead : kRowsRead;
  const Place at = place_of<width, kRows>(matrix);
  const unsigned lines = matrix.lines();
  for (int64_t first = at.last(matrix.rows); first >= at.begin; first -= at.step) {
    Numbers<T, width> values[kRows], more[kRows];
#pragma unroll
    for (unsigned j = 0; j < kRows; ++j) {
      const int64_t row = first + j * lines;
      if (row >= matrix.rows) continue;
      values[j] = read_last<width>(x + row * matrix.channels + at.channel);
      if constexpr (with_residual) more[j] = read_last<width>(residual + row * matrix.channels + at.channel);
    }
#pragma unroll
    for (unsigned j = 0; j < kRows; ++j) {
      const int64_t row = first + j * lines;
      if (row >= matrix.rows) continue;
      float results[width];
#pragma unroll
      for (unsigned k = 0; k < width; ++k) {
        const float value = values[j][k];
        const float normal = known ? (value - mean[k]) * factor[k] + beta[k] : 0.0F;
        results[k] = finish<T>(normal, with_residual ? more[j][k] : 0.0F, relu);
      }
      store<width>(y + row * matrix.channels + at.channel, results);
    }
  }
}

template <unsigned width>
__device__ int64_t channel_of(const Matrix& matrix) {
  return (static_cast<int64_t>(blockIdx.x) * matrix.columns + threadIdx.x % matrix.columns) * width;
}

template <unsigned width, bool with_residual, class T, bool by_image = false>
__global__ void __launch_bounds__(kBlock, kResident) normalise(Forward<T> f, Matrix matrix) {
  begin_kernel();
  if constexpr (by_image) go_to_image(f, matrix);
  const int64_t channel = channel_of<width>(matrix);
  if (channel >= matrix.channels) return;
  float mean[width], factor[width], beta[width];
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    mean[k] = f.mean[channel + k];
    factor[k] = f.rstd[channel + k] * f.gamma[channel + k];
    beta[k] = f.beta[channel + k];
  }
  const bool known = counted_rows(f.count, matrix) > 0;
  apply<width, with_residual, T>(f.x, f.residual, f.relu, f.y, mean, factor, beta, known, matrix);
}

template <unsigned width, class T>
__global__ void __launch_bounds__(kBlock, kResident) normalise_by_given(Inference<T> f, Matrix matrix) {
  begin_kernel();
  const int64_t channel = channel_of<width>(matrix);
  if (channel >= matrix.channels) return;
  float mean[width], factor[width], beta[width];
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    mean[k] = f.mean[channel + k];
    factor[k] = 1.0F / sqrtf(f.variance[channel + k] + f.epsilon) * f.gamma[channel + k];
    beta[k] = f.beta[channel + k];
  }
  apply<width, false, T>(f.x, nullptr, false, f.y, mean, factor, beta, true, matrix);
}

// dy and x of `width` channels of a row, and what dy is made of.
template <unsigned width, class T>
struct GradientRow {
  static constexpr bool kSigns = width == 8;  // a byte has the signs of a thread's channels

  Numbers<T, width> first, more, relu_y, x;
  uint8_t signs;

  __device__ __forceinline__ void read(const Backward<T>& b, int64_t address) {
    first = read_numbers<width>(b.dy + address);
    if (b.more_dy != nullptr) more = read_last<width>(b.more_dy + address);
    if (b.relu_y != nullptr) relu_y = read_last<width>(b.relu_y + address);
    x = read_numbers<width>(b.x + address);
  }
  // A second time: dy is there already as it goes on through the ReLU, or the signs of what the ReLU gave.
  __device__ __forceinline__ void read_again(const Backward<T>& b, int64_t address) {
    x = read_last<width>(b.x + address);
    if (b.masked != nullptr) {
      first = read_numbers<width>(b.masked + address);
      return;
    }
    first = read_last<width>(b.dy + address);
    if (b.more_dy != nullptr) more = read_last<width>(b.more_dy + address);
    if (kSigns && b.signs != nullptr)
      signs = __ldcs(b.signs + address / 8);
    else if (b.relu_y != nullptr)
      relu_y = read_last<width>(b.relu_y + address);
  }

  __device__ __forceinline__ float sum(const Backward<T>& b, unsigned k) const {
    const float value = first[k];
    return b.more_dy == nullptr ? value : rounded_to<T>(value + more[k]);
  }
  __device__ __forceinline__ bool passes(const Backward<T>& b, unsigned k) const {
    return b.relu_y == nullptr || relu_y[k] > 0.0F;
  }
  __device__ __forceinline__ float dy(const Backward<T>& b, unsigned k) const {
    return passes(b, k) ? sum(b, k) : 0.0F;
  }
  __device__ __forceinline__ float dy_again(const Backward<T>& b, unsigned k) const {
    if (b.masked != nullptr) return first[k];
    if (kSigns && b.signs != nullptr) return (signs >> k & 1) != 0 ? sum(b, k) : 0.0F;
    return dy(b, k);
  }
  __device__ __forceinline__ void keep_signs(const Backward<T>& b, int64_t address) const {
    if (!kSigns || b.signs == nullptr) return;
    unsigned bits = 0;
#pragma unroll
    for (unsigned k = 0; k < width; ++k) bits |= passes(b, k) ? 1U << k : 0U;
    b.signs[address / 8] = static_cast<uint8_t>(bits);
  }
};

// The sums of dy and of dy (x - mean) of every share.
template <unsigned width, class T, bool by_image = false>
__global__ void __launch_bounds__(kBlock, kGradientResident) reduce_gradients(Backward<T> b, Matrix matrix) {
  begin_kernel();
  if constexpr (by_image) go_to_image(b, matrix);
  const Place at = place_of<width, kFewRowsRead>(matrix);
  const unsigned lines = matrix.lines();
  const bool active = at.channel < matrix.channels;
  const int64_t counted = counted_rows(b.count, matrix);
  const int64_t end = !active ? 0 : b.masked != nullptr ? matrix.rows : counted;
  float mean[width];
#pragma unroll
  for (unsigned k = 0; k < width; ++k) mean[k] = active ? b.mean[at.channel + k] : 0.0F;
  float sums[width] = {};
  float products[width] = {};
  for (int64_t first = at.begin; first < end; first += at.step) {
    GradientRow<width, T> rows[kFewRowsRead];
#pragma unroll
    for (unsigned j = 0; j < kFewRowsRead; ++j) {
      const int64_t row = first + j * lines;
      if (row < end) rows[j].read(b, row * matrix.channels + at.channel);
    }
#pragma unroll
    for (unsigned j = 0; j < kFewRowsRead; ++j) {
      const int64_t row = first + j * lines;
      if (row >= end) continue;
      const int64_t address = row * matrix.channels + at.channel;
      float dy[width];
#pragma unroll
      for (unsigned k = 0; k < width; ++k) dy[k] = rows[j].dy(b, k);
      if (b.masked != nullptr) store<width>(b.masked + address, dy);
      rows[j].keep_signs(b, address);
      if (row >= counted) continue;
#pragma unroll
      for (unsigned k = 0; k < width; ++k) {
        sums[k] += dy[k];
        products[k] += dy[k] * (rows[j].x[k] - mean[k]);
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
  for (unsigned half = lines / 2; half > 0; half /= 2) {
    __syncthreads();
    if (at.line >= half) continue;
    const unsigned other = threadIdx.x + half * matrix.columns;
#pragma unroll
    for (unsigned k = 0; k < width; ++k) {
      of_sums[k][threadIdx.x] += of_sums[k][other];
      of_products[k][threadIdx.x] += of_products[k][other];
    }
  }
  if (at.line > 0 || !active) return;
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    b.parts[blockIdx.y * matrix.channels + at.channel + k] =
        make_float2(of_sums[k][threadIdx.x], of_products[k][threadIdx.x]);
  }
}

template <class T, bool by_image = false>
__global__ void __launch_bounds__(kBlock, kResident) join_gradients(Backward<T> b, Matrix matrix) {
  begin_kernel();
  if constexpr (by_image) go_to_image(b, matrix);
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

template <unsigned width, class T, bool by_image = false>
__global__ void __launch_bounds__(kBlock, kGradientResident) flow_back(Backward<T> b, Matrix matrix) {
  begin_kernel();
  if constexpr (by_image) go_to_image(b, matrix);
  const Place at = place_of<width, kFewRowsRead>(matrix);
  const unsigned lines = matrix.lines();
  if (at.channel >= matrix.channels) return;
  const int64_t counted = counted_rows(b.count, matrix);
  const auto n = static_cast<float>(max(counted, int64_t{1}));
  // dx = factor (dy - offset - (x - mean) slope). In half precision, where a thread has twice as many channels, as
  // factor dy + slope x + offset, to have registers enough: what that loses of x - mean is far below dx's rounding.
  constexpr bool kHalf = sizeof(T) == 2;
  float mean[kHalf ? 1 : width], factor[width], offset[width], slope[width];
#pragma unroll
  for (unsigned k = 0; k < width; ++k) {
    const float rstd = b.rstd[at.channel + k];
    const float of_mean = b.mean[at.channel + k];
    factor[k] = b.gamma[at.channel + k] * rstd;
    offset[k] = b.dbeta[at.channel + k] / n;
    slope[k] = b.dgamma[at.channel + k] * rstd / n;
    if constexpr (kHalf) {
      offset[k] = factor[k] * (of_mean * slope[k] - offset[k]);
      slope[k] *= -factor[k];
    } else {
      mean[k] = of_mean;
    }
  }
  for (int64_t first = at.last(matrix.rows); first >= at.begin; first -= at.step) {
    GradientRow<width, T> rows[kFewRowsRead];
#pragma unroll
    for (unsigned j = 0; j < kFewRowsRead; ++j) {
      const int64_t row = first + j * lines;
      if (row < counted) rows[j].read_again(b, row * matrix.channels + at.channel);
    }
#pragma unroll
    for (unsigned j = 0; j < kFewRowsRead; ++j) {
      const int64_t row = first + j * lines;
      if (row >= matrix.rows) continue;
      float dx[width] = {};  // of rows that do not count
#pragma unroll
      for (unsigned k = 0; k < width && row < counted; ++k) {
        const float dy = rows[j].dy_again(b, k);
        if constexpr (kHalf)
          dx[k] = factor[k] * dy + (slope[k] * rows[j].x[k] + offset[k]);
        else
          dx[k] = factor[k] * (dy - offset[k] - (rows[j].x[k] - mean[k]) * slope[k]);
      }
      store<width>(b.dx + row * matrix.channels + at.channel, dx);
    }
  }
}

}  // namespace gpunn::cuda_tiled::channels_last
