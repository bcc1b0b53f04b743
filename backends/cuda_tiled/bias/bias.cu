// BIAS_BACKWARD and BIAS_ACTIVATION_BACKWARD. cuDNN has the first for images, without the mask, and leaves most of the
// GPU idle on few channels. Here each thread block sums a share of a channel's rows, and the last block to finish adds
// the shares in their order. So equal inputs give equal bits, without a second launch. In a matrix a block sums 32
// neighbouring columns, so that a warp reads a contiguous piece of a row. cuda_naive's block sums one column and uses 4
// of the 32 bytes that each load fetches. Channels-last images are a matrix with a row a pixel.
//
// H200, with the mask: 2048 x 4096 takes 30.8 us, 4096 x 512 9.7 us, 16384 x 256 10.3 us.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "common/bias.hpp"
#include "counters.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "last_block.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

constexpr unsigned kChannelThreads = 256;  // of a block that has one channel
constexpr int kBatch = 8;                  // elements that a thread has in flight
constexpr int64_t kElementsOfThread = kBatch;
constexpr int64_t kMostShares = 256;
constexpr int kColumns = 32;  // of a block that has columns of a matrix
constexpr int64_t kColumnRows = 32;
constexpr unsigned kColumnThreads = kColumns * kColumnRows;
// Of a share at least: up to here a second sum, of shares, costs more than it saves.
constexpr int64_t kRowsOfColumns = 1024;
constexpr int64_t kBlocksWanted = 256;

struct BiasGradient {
  Bias shape;
  bool activation = false;  // dx is wanted
  int64_t rows_of_share = 1;
  int64_t shares = 1;
  uint64_t workspace_bytes = 0;
};

BiasGradient split(const Bias& shape, bool activation) {
  BiasGradient plan{.shape = shape, .activation = activation};
  if (shape.size == 1) {
    require(shape.rows < (int64_t{1} << 31) && shape.channels <= (int64_t{1} << 22), "wants fewer rows and columns");
    const int64_t groups = cuda::divide_up(shape.channels, kColumns);
    const int64_t shares_wanted = std::clamp<int64_t>(kBlocksWanted / std::max<int64_t>(groups, 1), 1, kMostShares);
    plan.rows_of_share = std::max(kRowsOfColumns, cuda::divide_up(shape.rows, shares_wanted));
    plan.shares = std::max<int64_t>(1, cuda::divide_up(shape.rows, plan.rows_of_share));
    if (plan.shares > 1) plan.workspace_bytes = static_cast<uint64_t>(plan.shares * shape.channels) * sizeof(float);
    return plan;
  }
  const int64_t rows_of_block = std::max<int64_t>(1, kChannelThreads * kElementsOfThread / shape.size);
  require(shape.size <= (1 << 20), "wants images of at most 2^20 elements");
  plan.rows_of_share = std::max(rows_of_block, cuda::divide_up(shape.rows, kMostShares));
  plan.shares = std::max<int64_t>(1, cuda::divide_up(shape.rows, plan.rows_of_share));
  require(shape.channels <= (int64_t{1} << 22), "wants at most 2^22 channels");
  require(plan.rows_of_share * shape.size < (int64_t{1} << 31), "wants shares below 2^31 elements");
  if (plan.shares > 1) plan.workspace_bytes = static_cast<uint64_t>(plan.shares * shape.channels) * sizeof(float);
  return plan;
}

BiasGradient backward_plan(const OpDesc& desc) { return split(bias_backward_of(desc), false); }
BiasGradient activation_backward_plan(const OpDesc& desc) { return split(bias_activation_backward_of(desc), true); }

// One of all blocks, or, of a matrix, one of those that have the same columns.
std::size_t counters_of(const BiasGradient& plan) {
  return plan.shape.size == 1 ? static_cast<std::size_t>(plan.shape.channels / kColumns + 1) : 1;
}

// What of dy goes on: where the activation is a ReLU, all that lies behind a positive y.
template <class T>
struct Mask {
  const T* dy;
  const T* y;
  T* dx;  // may be dy; NULL: is not wanted
  bool relu;
};

// The sum of what goes on at index_of(first), index_of(first + step), ... below `end`. A batch is loaded whole before
// any of it is stored: dx may be dy, so that the compiler would have each load wait for the store before it.
template <class T, class IndexOf>
__device__ float masked_sum(const Mask<T>& mask, int64_t first, int64_t end, int64_t step, const IndexOf& index_of) {
  float sum = 0.0F;
  for (int64_t i = first; i < end; i += kBatch * step) {
    int64_t index[kBatch];
    T gradient[kBatch], y[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const bool there = i + k * step < end;
      index[k] = there ? index_of(i + k * step) : 0;
      gradient[k] = there ? mask.dy[index[k]] : T(0.0F);
      y[k] = there && mask.relu ? mask.y[index[k]] : T(1.0F);
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (i + k * step >= end) break;
      const T passed = static_cast<float>(y[k]) > 0.0F ? gradient[k] : T(0.0F);
      sum += static_cast<float>(passed);
      if (mask.dx != nullptr) mask.dx[index[k]] = passed;
    }
  }
  return sum;
}

struct Target {
  float* sums;  // [shares, channels]; db itself where there is one share
  float* db;
  unsigned* counters;  // 0 between launches
  int64_t rows_of_share;
  int64_t shares;
};

// db[c] = the sum of sums[share][c] from channel `first` up to `end`, a warp for each, by one block.
__device__ __forceinline__ void add_shares(const float* sums, float* db, int64_t channels, int64_t shares,
                                           int64_t first, int64_t end) {
  const unsigned thread = threadIdx.x;
  const unsigned warps = blockDim.x / 32;
  for (int64_t channel = first + thread / 32; channel < end; channel += warps) {
    float sum = 0.0F;
    for (int64_t share = thread % 32; share < shares; share += 32) sum += __ldcg(sums + share * channels + channel);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffU, sum, offset);
    if (thread % 32 == 0) db[channel] = sum;
  }
}

// Of the blocks that have the columns of group blockIdx.x % `groups` the last one adds what all have. Not inline: the
// loop before has no registers to spare for this (1024 x 2048: 12.7 us inline, 7.6 so).
__device__ __noinline__ void add_columns(const float* sums, float* db, unsigned* counters, int64_t channels,
                                         int64_t shares, unsigned groups) {
  const unsigned group = blockIdx.x % groups;
  if (!BlockTurn(counters + group, static_cast<unsigned>(shares)).is_last()) return;
  const int64_t first = int64_t{group} * kColumns;
  add_shares(sums, db, channels, shares, first, min(first + kColumns, channels));
}

// A block for a channel and a share of the rows of [rows, channels, size].
template <class T>
__global__ void sum_channel(Mask<T> mask, Bias shape, Target to) {
  __shared__ float slots[kChannelThreads];
  const int64_t channel = blockIdx.x % shape.channels;
  const int64_t share = blockIdx.x / shape.channels;
  const int64_t first = share * to.rows_of_share;
  const int64_t rows = min(to.rows_of_share, shape.rows - first);
  const auto size = static_cast<unsigned>(shape.size);  // of a share, everything fits 32 bits
  slots[threadIdx.x] = masked_sum(mask, threadIdx.x, rows * shape.size, kChannelThreads, [&](int64_t i) {
    const auto at = static_cast<unsigned>(i);
    return ((first + at / size) * shape.channels + channel) * shape.size + at % size;
  });
  for (unsigned half = kChannelThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) slots[threadIdx.x] += slots[threadIdx.x + half];
  }
  if (threadIdx.x == 0) to.sums[share * shape.channels + channel] = slots[0];
  if (to.shares > 1 && BlockTurn(to.counters, gridDim.x).is_last()) {
    add_shares(to.sums, to.db, shape.channels, to.shares, 0, shape.channels);
  }
}

// A block for 32 columns and a share of the rows of a matrix.
template <class T>
__global__ void __launch_bounds__(kColumnThreads) sum_columns(Mask<T> mask, Bias shape, Target to) {
  __shared__ float slots[kColumnRows][kColumns];
  const int64_t groups = cuda::divide_up(shape.channels, kColumns);
  const int64_t share = blockIdx.x / groups;
  const unsigned column = threadIdx.x % kColumns;
  const unsigned row = threadIdx.x / kColumns;
  const int64_t channel = blockIdx.x % groups * kColumns + column;
  const int64_t first = share * to.rows_of_share;
  const int64_t end = channel < shape.channels ? min(first + to.rows_of_share, shape.rows) : 0;
  slots[row][column] =
      masked_sum(mask, first + row, end, kColumnRows, [&](int64_t i) { return i * shape.channels + channel; });
  for (unsigned half = kColumnRows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (row < half) slots[row][column] += slots[row + half][column];
  }
  if (row == 0 && channel < shape.channels) to.sums[share * shape.channels + channel] = slots[0][column];
  if (to.shares > 1) {
    add_columns(to.sums, to.db, to.counters, shape.channels, to.shares, static_cast<unsigned>(groups));
  }
}

struct BiasKernel {
  BiasGradient plan;
  std::unique_ptr<Counters> counters;  // its own
};

template <class T>
void run(const BiasKernel& kernel, cudaStream_t stream, const OpArgs& args) {
  const BiasGradient& plan = kernel.plan;
  const Bias& shape = plan.shape;
  const Mask<T> mask{.dy = args.in<T>(0),
                     .y = plan.activation ? args.in<T>(1) : nullptr,
                     .dx = plan.activation ? args.out<T>(0) : nullptr,
                     .relu = shape.relu && plan.activation};
  auto* const db = args.out<float>(plan.activation ? 1 : 0);
  const Target to{.sums = plan.shares > 1 ? args.workspace<float>() : db,
                  .db = db,
                  .counters = kernel.counters->data(),
                  .rows_of_share = plan.rows_of_share,
                  .shares = plan.shares};
  if (shape.size == 1) {
    const int64_t groups = cuda::divide_up(shape.channels, kColumns);
    return launch(sum_columns<T>, block_each(groups * plan.shares, kColumnThreads), stream, mask, shape, to);
  }
  launch(sum_channel<T>, block_each(shape.channels * plan.shares, kChannelThreads), stream, mask, shape, to);
}

// As cuda::add_op does, for kernels that each have counters of their own.
void add_gradient(TiledDevice& device, int32_t op, const char* name, BiasGradient (*plan)(const OpDesc&)) {
  plugin::KernelFactory factory;
  factory.half = true;
  factory.channels_last = true;
  factory.query = [plan](const OpDesc& desc) {
    return support_of([&] { return plugin::Support::yes(plan(desc).workspace_bytes); });
  };
  factory.create = [&device, plan, name](const OpDesc& desc) {
    cuda::check(cudaSetDevice(device.index()), "choosing the device");
    const BiasGradient made = plan(desc);
    return plugin::make_kernel([kernel = BiasKernel{made, std::make_unique<Counters>(counters_of(made))},
                                run = each_floating([](auto x) { return run<decltype(x)>; }),
                                name](plugin::Stream& stream, const OpArgs& args) {
      const ProfilerRange range(name);
      run(kernel, native(stream), args);
    });
  };
  device.add(op, std::move(factory));
}

}  // namespace

void add_bias_kernels(TiledDevice& device) {
  add_gradient(device, GPUNN_OP_BIAS_BACKWARD, "bias_backward", backward_plan);
  add_gradient(device, GPUNN_OP_BIAS_ACTIVATION_BACKWARD, "bias_activation_backward", activation_backward_plan);
}

}  // namespace gpunn::cuda_tiled
