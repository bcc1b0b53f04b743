// CROSS_ENTROPY, reading x once: a running maximum and the sum of the exponentials relative to it. Whenever the maximum
// rises, the sum is multiplied by exp(old - new). (Milakov and Gimelshein, 2018)
//
// Positions that lie side by side: a thread has one position, or four that one access reads together, and goes through
// the classes, eight loads at a time. Rows of up to 1024 classes: some lanes of a warp have a row in registers. Longer
// rows: a thread block has a row and reads 16 bytes a thread.
//
// Label smoothing takes a second pass over x, since each class adds lse - x_c and lse is known at the end. The score of
// the label is read by itself; at that time it is in a cache.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/class_scores.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/alignment.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "pack.cuh"
#include "softmax/class_targets.cuh"
#include "softmax/warp_rows.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

constexpr int kLongRowThreads = 256;
constexpr int64_t kMostWarpColumns = 1024;

// The largest of some numbers, and the sum of exp(x - largest). Of a NaN or +infinity the sum is NaN.
struct RunningSum {
  float largest;
  float sum;

  __device__ __forceinline__ static RunningSum none() { return {-INFINITY, 0.0F}; }

  // Adds numbers up to `most`: `added` is the sum of their exp(x - base(most)).
  __device__ __forceinline__ static float base(float most) { return most == -INFINITY ? 0.0F : most; }
  __device__ __forceinline__ void add(float most, float added) {
    sum = sum * expf(largest - base(most)) + added;
    largest = most;
  }
  __device__ __forceinline__ void add(const RunningSum& other) {
    const float most = fmaxf(largest, other.largest);
    add(most, other.sum * expf(other.largest - base(most)));
  }
  // NaN of nothing but -infinity.
  __device__ __forceinline__ float log_sum() const { return largest == -INFINITY ? NAN : logf(sum); }
};

struct EntropyOutputs {
  float* loss;
  float* share;
  float* lse;
};

// own is lse - x of the label, all the sum of weight * (lse - x) over the classes.
__device__ __forceinline__ float loss_of(const ClassTargets& targets, int32_t named, float own, float all) {
  if (!targets.counts(named)) return named == targets.entropy.ignore_index ? 0.0F : NAN;
  const float loss = (1.0F - targets.entropy.smoothing) * targets.weight_of(named) * own;
  return targets.entropy.smoothing > 0.0F ? loss + targets.share() * all : loss;
}

__device__ __forceinline__ float share_of(const ClassTargets& targets, int32_t named) {
  return targets.counts(named) ? targets.weight_of(named) : 0.0F;
}

template <class T, int width>
__global__ void __launch_bounds__(cuda::kThreads)
    entropy_of_positions(ClassTargets targets, const T* x, EntropyOutputs out) {
  const ClassScores& shape = targets.entropy.shape;
  const PositionGroup group(shape, thread_index(), width);
  if (!group.there) return;
  const T* scores = x + group.first;
  RunningSum sums[width];
#pragma unroll
  for (RunningSum& one : sums) one = RunningSum::none();
  for (int64_t begin = 0; begin < shape.classes; begin += kClassesAtOnce) {
    Pack<T, width> packs[kClassesAtOnce];
#pragma unroll
    for (int k = 0; k < kClassesAtOnce; ++k) {
      if (begin + k >= shape.classes) break;
      packs[k] = *reinterpret_cast<const Pack<T, width>*>(scores + (begin + k) * shape.inner);
    }
#pragma unroll
    for (int v = 0; v < width; ++v) {
      float most = sums[v].largest, added = 0.0F;
#pragma unroll
      for (int k = 0; k < kClassesAtOnce; ++k) {
        if (begin + k < shape.classes) most = fmaxf(most, static_cast<float>(packs[k].values[v]));
      }
#pragma unroll
      for (int k = 0; k < kClassesAtOnce; ++k) {
        if (begin + k >= shape.classes) break;
        added += expf(static_cast<float>(packs[k].values[v]) - RunningSum::base(most));
      }
      sums[v].add(most, added);
    }
  }
  float log_sum[width], all[width] = {};
#pragma unroll
  for (int v = 0; v < width; ++v) log_sum[v] = sums[v].log_sum();
  if (targets.entropy.smoothing > 0.0F) {
#pragma unroll 4
    for (int64_t c = 0; c < shape.classes; ++c) {
      const Pack<T, width> pack = *reinterpret_cast<const Pack<T, width>*>(scores + c * shape.inner);
      const float weight = targets.weight_of(c);
#pragma unroll
      for (int v = 0; v < width; ++v) {
        all[v] += weight * (log_sum[v] - (static_cast<float>(pack.values[v]) - sums[v].largest));
      }
    }
  }
  const auto label = *reinterpret_cast<const Pack<int32_t, width>*>(targets.label + group.position);
  Pack<float, width> loss, share, lse;
#pragma unroll
  for (int v = 0; v < width; ++v) {
    const int32_t named = label.values[v];
    float own = 0.0F;
    if (targets.counts(named)) {
      own = log_sum[v] - (static_cast<float>(scores[named * shape.inner + v]) - sums[v].largest);
    }
    loss.values[v] = loss_of(targets, named, own, all[v]);
    share.values[v] = share_of(targets, named);
    lse.values[v] = sums[v].largest + log_sum[v];
  }
  *reinterpret_cast<Pack<float, width>*>(out.loss + group.position) = loss;
  *reinterpret_cast<Pack<float, width>*>(out.share + group.position) = share;
  *reinterpret_cast<Pack<float, width>*>(out.lse + group.position) = lse;
}

// By the thread that has the results of a row.
template <class T>
__device__ __forceinline__ void store_entropy_row(const ClassTargets& targets, const T* scores, int64_t row,
                                                  float largest, float log_sum, float all, const EntropyOutputs& out) {
  const int32_t named = targets.label[row];
  const float own = targets.counts(named) ? log_sum - (static_cast<float>(scores[named]) - largest) : 0.0F;
  out.loss[row] = loss_of(targets, named, own, all);
  out.share[row] = share_of(targets, named);
  out.lse[row] = largest + log_sum;
}

template <class T>
struct EntropyOfRow {
  ClassTargets targets;
  const T* x;
  EntropyOutputs out;

  template <class R>
  __device__ void operator()(const R& row) const {
    float values[R::count];
    row.load(x, values, -INFINITY);
    const SoftmaxSums found = softmax_sums(row, values);
    const float log_sum = logf(found.sum);
    float all = 0.0F;
    if (targets.entropy.smoothing > 0.0F) {  // for all threads alike
#pragma unroll
      for (int i = 0; i < R::count; ++i) {
        if (row.has(i)) all += targets.weight_of(row.lane + i * R::lanes) * (log_sum - (values[i] - found.largest));
      }
      all = sum_among<R::lanes>(all);
    }
    if (!row.there || row.lane != 0) return;
    store_entropy_row(targets, x + row.row * row.columns, row.row, found.largest, log_sum, all, out);
  }
};

// Calls visit(values, column of the first) for what this thread has of a row: 16 bytes at a time, and single numbers
// before the first multiple of 16 bytes and after the last.
template <class T, class Visit>
__device__ __forceinline__ void for_each_pack(const T* row, int64_t columns, const Visit& visit) {
  constexpr int kWidth = 16 / sizeof(T);
  const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(row) % 16 / sizeof(T));
  const int64_t head = min(offset == 0 ? int64_t{0} : kWidth - offset, columns);
  const int64_t packs = (columns - head) / kWidth, tail = head + packs * kWidth;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < packs; i += kLongRowThreads) {
    const auto pack = *reinterpret_cast<const Pack<T, kWidth>*>(row + head + i * kWidth);
    float values[kWidth];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) values[k] = static_cast<float>(pack.values[k]);
    visit(values, head + i * kWidth);
  }
  const int64_t single = threadIdx.x < head ? int64_t{threadIdx.x} : tail + threadIdx.x - head;
  if (single >= columns) return;
  const float values[1] = {static_cast<float>(row[single])};
  visit(values, single);
}

// What the block's threads have, combined, in all of them. `nothing` adds nothing.
template <class Value, class Combine>
__device__ Value block_combined(Value mine, const Value& nothing, const Combine& combine) {
  __shared__ Value of_warp[kLongRowThreads / kWarp];
  __shared__ Value of_block;
  mine = combine(mine);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = mine;
  __syncthreads();
  if (threadIdx.x < kWarp) {
    const Value all = combine(threadIdx.x < kLongRowThreads / kWarp ? of_warp[threadIdx.x] : nothing);
    if (threadIdx.x == 0) of_block = all;
  }
  __syncthreads();
  return of_block;
}

__device__ RunningSum warp_running_sum(RunningSum mine) {
#pragma unroll
  for (int reach = kWarp / 2; reach > 0; reach /= 2) {
    mine.add(
        RunningSum{__shfl_xor_sync(kEveryLane, mine.largest, reach), __shfl_xor_sync(kEveryLane, mine.sum, reach)});
  }
  return mine;
}

template <class T>
__global__ void __launch_bounds__(kLongRowThreads)
    entropy_of_long_rows(ClassTargets targets, const T* x, EntropyOutputs out) {
  const ClassScores& shape = targets.entropy.shape;
  for (int64_t row = blockIdx.x; row < shape.outer; row += gridDim.x) {
    const T* scores = x + row * shape.classes;
    RunningSum mine = RunningSum::none();
    for_each_pack(scores, shape.classes, [&](const auto& values, int64_t) {
      float most = mine.largest, added = 0.0F;
#pragma unroll
      for (const float value : values) most = fmaxf(most, value);
#pragma unroll
      for (const float value : values) added += expf(value - RunningSum::base(most));
      mine.add(most, added);
    });
    const RunningSum sums = block_combined(mine, RunningSum::none(), warp_running_sum);
    const float log_sum = sums.log_sum();
    float all = 0.0F;
    if (targets.entropy.smoothing > 0.0F) {
      for_each_pack(scores, shape.classes, [&](const auto& values, int64_t column) {
#pragma unroll
        for (const float value : values) all += targets.weight_of(column++) * (log_sum - (value - sums.largest));
      });
      all = block_combined(all, 0.0F, sum_among<kWarp>);
    }
    if (threadIdx.x == 0) store_entropy_row(targets, scores, row, sums.largest, log_sum, all, out);
  }
}

template <class T>
void run_entropy_positions(const ClassTargets& targets, const T* x, const EntropyOutputs& out, cudaStream_t stream) {
  const ClassScores& shape = targets.entropy.shape;
  constexpr int kWidth = 4;
  const bool packed = shape.inner % kWidth == 0 && is_aligned(x, kWidth * sizeof(T)) &&
                      are_aligned({targets.label, out.loss, out.share, out.lse}, kWidth * sizeof(float));
  if (packed && shape.positions() >= kManyPositions) {
    launch(entropy_of_positions<T, kWidth>, thread_each(shape.positions() / kWidth), stream, targets, x, out);
  } else {
    launch(entropy_of_positions<T, 1>, thread_each(shape.positions()), stream, targets, x, out);
  }
}

template <class T>
void run_entropy_rows(const ClassTargets& targets, const T* x, const EntropyOutputs& out, cudaStream_t stream) {
  const ClassScores& shape = targets.entropy.shape;
  const EntropyOfRow<T> op{targets, x, out};
  const int64_t rows = shape.outer, columns = shape.classes;
  if (columns > kMostWarpColumns) {
    const Launch blocks = block_each(std::min<int64_t>(rows, std::numeric_limits<int32_t>::max()), kLongRowThreads);
    return launch(entropy_of_long_rows<T>, blocks, stream, targets, x, out);
  }
  if (columns <= 8) return launch_rows<EntropyOfRow<T>, 8, 1>(op, rows, columns, stream);
  // Eight lanes take a quarter of the shuffles that a whole warp takes for a row.
  if (columns <= 32) return launch_rows<EntropyOfRow<T>, 8, 4>(op, rows, columns, stream);
  if (columns <= 128) return launch_rows<EntropyOfRow<T>, 32, 4>(op, rows, columns, stream);
  if (columns <= 512) return launch_rows<EntropyOfRow<T>, 32, 16>(op, rows, columns, stream);
  launch_rows<EntropyOfRow<T>, 32, 32>(op, rows, columns, stream);
}

template <class T>
void run_dense_cross_entropy(const CrossEntropy& plan, cudaStream_t stream, const OpArgs& args) {
  const ClassTargets targets{plan, args.in<int32_t>(1), plan.weighted ? args.in<float>(2) : nullptr};
  const EntropyOutputs out{args.out<float>(0), args.out<float>(1), args.out<float>(2)};
  if (plan.shape.positions() == 0) return;
  if (plan.shape.inner == 1) return run_entropy_rows(targets, args.in<T>(0), out, stream);
  run_entropy_positions(targets, args.in<T>(0), out, stream);
}

CrossEntropy plan_dense_cross_entropy(const OpDesc& desc) {
  const CrossEntropy plan = dense_cross_entropy_of(desc);
  require(plan.shape.positions() < (int64_t{1} << 33), "wants fewer positions");
  return plan;
}

}  // namespace

void add_dense_cross_entropy_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_CROSS_ENTROPY, "cross_entropy", plan_dense_cross_entropy,
         each_floating([](auto x) { return run_dense_cross_entropy<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_tiled
