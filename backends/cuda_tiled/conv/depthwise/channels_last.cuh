// Depthwise convolutions of channels-last images. Threads read their inputs directly from global memory. Neighbouring
// threads of a block share columns through the first-level cache, and the next row is in flight while one is added.
#pragma once

#include <cuda_runtime.h>

#include "conv/depthwise/depthwise_plan.hpp"
#include "conv/depthwise/sliding_sums.cuh"
#include "pack.cuh"

namespace gpunn::cuda_tiled::depthwise {

// The rows of an image. A thread reads `count` columns from `column` on, `width` channels of each.
template <class T, int count, int width>
class RowReader {
 public:
  using Values = float[count][width];

  __device__ __forceinline__ RowReader(int rows, int columns, int channels, int column)
      : rows_(rows), columns_(columns), channels_(channels), column_(column) {}

  // Starts at this row of an image; `image` points to its first pixel, at the thread's channels.
  __device__ __forceinline__ void start(const T* image, int row) {
    row_ = row;
    at_ = image + (int64_t{row} * columns_ + column_) * channels_;
    fetch();
  }

  // Returns the fetched row and fetches the next.
  __device__ __forceinline__ void next(Values& values) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
#pragma unroll
      for (int c = 0; c < width; ++c) values[i][c] = static_cast<float>(fetched_[i].values[c]);
    }
    ++row_;
    at_ += int64_t{columns_} * channels_;
    fetch();
  }

  __device__ __forceinline__ void skip_to(int row) { last_ = row; }

 private:
  // Pixels outside the image are zeros.
  __device__ __forceinline__ void fetch() {
    const bool inside = row_ >= 0 && row_ < rows_ && row_ < last_;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const bool there = inside && static_cast<unsigned>(column_ + i) < static_cast<unsigned>(columns_);
      Pack<T, width> pack;
#pragma unroll
      for (int c = 0; c < width; ++c) pack.values[c] = static_cast<T>(0.0F);
      if (there) pack = *reinterpret_cast<const Pack<T, width>*>(at_ + int64_t{i} * channels_);
      fetched_[i] = pack;
    }
  }

  int rows_, columns_, channels_, column_;
  int row_ = 0;
  int last_ = INT32_MAX;  // rows from here on are not read
  const T* at_ = nullptr;
  Pack<T, width> fetched_[count];
};

// w[channels][taps][taps] of the channels from `channel` on, which are contiguous.
template <class T, int taps, int width>
__device__ __forceinline__ void load_weights(const T* w, int channel, Weights<taps, width>& weights) {
  constexpr int kSize = taps * taps;
  const auto* from = reinterpret_cast<const Pack<T, width>*>(w + int64_t{channel} * kSize);
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    const Pack<T, width> pack = from[i];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const int element = i * width + k, c = element / kSize, tap = element % kSize;
      weights.at[tap / taps][tap % taps][c] = static_cast<float>(pack.values[k]);
    }
  }
}

// The work of a thread.
struct Task {
  int channel;
  int column;  // in steps of the thread's columns
  int row;     // the chunk's first
  int image;   // the first
};

__device__ __forceinline__ Task task_of(const ChannelsLastPlan& plan, int number, int width) {
  const Divider::Result lane = plan.by_lanes(number);
  const Divider::Result column = plan.by_columns(lane.quotient);
  const Divider::Result chunk = plan.by_chunks(column.quotient);
  const Divider::Result images = plan.by_images(chunk.quotient);
  return {.channel = (images.quotient * plan.lanes + lane.rest) * width,
          .column = column.rest,
          .row = chunk.rest * plan.chunk,
          .image = images.rest * plan.images};
}

template <class T, int width>
__device__ __forceinline__ void store(T* to, const float (&values)[width]) {
  Pack<T, width> pack;
#pragma unroll
  for (int c = 0; c < width; ++c) pack.values[c] = static_cast<T>(values[c]);
  *reinterpret_cast<Pack<T, width>*>(to) = pack;
}

template <class T, int taps, int stride>
__global__ void __launch_bounds__(kChannelsLastThreads)
    forward_channels_last(const T* __restrict__ x, const T* __restrict__ w, Epilogue epilogue, T* __restrict__ y,
                          Sizes z, ChannelsLastPlan plan) {
  constexpr int kChannels = kWidth<taps>, kColumns = columns_of(backends::ConvolutionPass::forward, stride);
  using Sums = ForwardSums<taps, stride, kColumns, kChannels>;
  const int64_t number = int64_t{blockIdx.x} * kChannelsLastThreads + threadIdx.x;
  if (number >= plan.tasks) return;
  const Task task = task_of(plan, static_cast<int>(number), kChannels);
  if (task.channel >= z.channels) return;
  Weights<taps, kChannels> weights;
  load_weights(w, task.channel, weights);
  float bias[kChannels] = {};
  if (epilogue.bias != nullptr) {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) bias[c] = epilogue.bias[task.channel + c];
  }
  const int column = task.column * kColumns;
  const int end = min(task.row + plan.chunk, z.y_rows);
  RowReader<T, Sums::kRead, kChannels> reader(z.x_rows, z.x_columns, z.channels, column * stride - z.pad_columns);
  reader.skip_to((end - 1) * stride - z.pad_rows + taps);
  const int64_t x_size = int64_t{z.x_rows} * z.x_columns * z.channels;
  const int64_t y_pitch = int64_t{z.y_columns} * z.channels;
  for (int n = task.image; n < min(task.image + plan.images, z.batch); ++n) {
    T* to = y + ((int64_t{n} * z.y_rows + task.row) * z.y_columns + column) * z.channels + task.channel;
    reader.start(x + n * x_size + task.channel, task.row * stride - z.pad_rows);
    Sums sums;
    sums.clear();
    for (int a = task.row; a < end + Sums::kSteps - 1; ++a) {
      typename RowReader<T, Sums::kRead, kChannels>::Values values;
      reader.next(values);
      sums.template add<0>(values, weights);
      if constexpr (stride == 2) {
        reader.next(values);
        sums.template add<1>(values, weights);
      }
      if (a >= task.row + Sums::kSteps - 1) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          float done[kChannels];
#pragma unroll
          for (int c = 0; c < kChannels; ++c) {
            done[c] = rectified(sums.complete()[j][c] + bias[c], epilogue.relu);
          }
          if (column + j < z.y_columns) store<T, kChannels>(to + int64_t{j} * z.channels, done);
        }
        to += y_pitch;
      }
      sums.next();
    }
  }
}

template <class T, int taps, int stride, int shift>
__global__ void __launch_bounds__(kChannelsLastThreads)
    data_gradient_channels_last(const T* __restrict__ dy, const T* __restrict__ w, T* __restrict__ dx, Sizes z,
                                ChannelsLastPlan plan) {
  constexpr int kChannels = kWidth<taps>, kGroups = columns_of(backends::ConvolutionPass::backward_data, stride);
  using Sums = DataSums<taps, stride, shift, kGroups, kChannels>;
  const int64_t number = int64_t{blockIdx.x} * kChannelsLastThreads + threadIdx.x;
  if (number >= plan.tasks) return;
  const Task task = task_of(plan, static_cast<int>(number), kChannels);
  if (task.channel >= z.channels) return;
  Weights<taps, kChannels> weights;
  load_weights(w, task.channel, weights);
  const int group = task.column * kGroups;
  const int end = min(task.row + plan.chunk, (z.x_rows + stride - 1) / stride);
  const int before_rows = (z.pad_rows + shift) / stride, before_columns = (z.pad_columns + shift) / stride;
  const int back = Sums::kSteps - 1;
  RowReader<T, Sums::kRead, kChannels> reader(z.y_rows, z.y_columns, z.channels, group + before_columns - back);
  reader.skip_to(end + before_rows);
  const int64_t y_size = int64_t{z.y_rows} * z.y_columns * z.channels;
  for (int n = task.image; n < min(task.image + plan.images, z.batch); ++n) {
    T* const image = dx + int64_t{n} * z.x_rows * z.x_columns * z.channels + task.channel;
    reader.start(dy + n * y_size + task.channel, task.row + before_rows - back);
    Sums sums;
    sums.clear();
    for (int a = task.row - back; a < end; ++a) {
      typename RowReader<T, Sums::kRead, kChannels>::Values values;
      reader.next(values);
      sums.add(values, weights);
      if (a >= task.row) {
#pragma unroll
        for (int j = 0; j < kGroups; ++j) {
#pragma unroll
          for (int b = 0; b < stride; ++b) {
#pragma unroll
            for (int d = 0; d < stride; ++d) {
              const int row = a * stride + b, column = (group + j) * stride + d;
              if (row >= z.x_rows || column >= z.x_columns) continue;
              store<T, kChannels>(image + (int64_t{row} * z.x_columns + column) * z.channels, sums.complete(j)[b][d]);
            }
          }
        }
      }
      sums.next();
    }
  }
}

// parts[split][channels][taps][taps]: the sums over the images and rows of each split.
template <class T, int taps, int stride>
__global__ void __launch_bounds__(kChannelsLastThreads)
    weight_gradient_channels_last(const T* __restrict__ dy, const T* __restrict__ x, float* __restrict__ parts, Sizes z,
                                  ChannelsLastPlan plan) {
  constexpr int kChannels = kWidth<taps>, kColumns = columns_of(backends::ConvolutionPass::backward_filter, stride);
  using Sums = FilterSums<taps, stride, kColumns, kChannels>;
  __shared__ float shared[taps * kChannels][kChannelsLastThreads];
  const int lane = static_cast<int>(threadIdx.x) % plan.lanes;
  const int deep = static_cast<int>(threadIdx.x) / plan.lanes;
  const int channel = (static_cast<int>(blockIdx.x) * plan.lanes + lane) * kChannels;
  const int64_t x_size = int64_t{z.x_rows} * z.x_columns * z.channels;
  const int64_t y_size = int64_t{z.y_rows} * z.y_columns * z.channels;
  Sums sums;
  sums.clear();
  const int first = static_cast<int>(blockIdx.y) * plan.depth + deep;
  const int step = plan.depth * plan.splits;
  for (int number = first; channel < z.channels && number < plan.tasks; number += step) {
    const Divider::Result column = plan.by_columns(number);
    const Divider::Result chunk = plan.by_chunks(column.quotient);
    const int row = chunk.rest * plan.chunk, n = chunk.quotient;
    const int left = column.rest * kColumns;
    const int end = min(row + plan.chunk, z.y_rows);
    RowReader<T, kColumns, kChannels> dy_reader(z.y_rows, z.y_columns, z.channels, left);
    RowReader<T, Sums::kRead, kChannels> x_reader(z.x_rows, z.x_columns, z.channels, left * stride - z.pad_columns);
    dy_reader.skip_to(end);
    x_reader.skip_to((end - 1) * stride - z.pad_rows + taps);
    dy_reader.start(dy + n * y_size + channel, row);
    x_reader.start(x + n * x_size + channel, row * stride - z.pad_rows);
    sums.forget();
    for (int a = row; a < end + Sums::kSteps - 1; ++a) {
      float dy_values[kColumns][kChannels];
      dy_reader.next(dy_values);
      sums.step(dy_values);
      typename RowReader<T, Sums::kRead, kChannels>::Values values;
      x_reader.next(values);
      sums.template add<0>(values);
      if constexpr (stride == 2) {
        x_reader.next(values);
        sums.template add<1>(values);
      }
    }
  }
  int half = 1;
  while (half < plan.depth) half *= 2;
#pragma unroll
  for (int r = 0; r < taps; ++r) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < taps * kChannels; ++i) shared[i][threadIdx.x] = sums.sum[r][i / kChannels][i % kChannels];
    for (int h = half / 2; h > 0; h /= 2) {
      __syncthreads();
      if (deep < h && deep + h < plan.depth) {
#pragma unroll
        for (int i = 0; i < taps * kChannels; ++i) shared[i][threadIdx.x] += shared[i][threadIdx.x + h * plan.lanes];
      }
    }
    if (deep > 0 || channel >= z.channels) continue;
#pragma unroll
    for (int i = 0; i < taps * kChannels; ++i) {
      const int64_t filter = int64_t{blockIdx.y} * z.channels + channel + i % kChannels;
      parts[(filter * taps + r) * taps + i / kChannels] = shared[i][threadIdx.x];
    }
  }
}

}  // namespace gpunn::cuda_tiled::depthwise
