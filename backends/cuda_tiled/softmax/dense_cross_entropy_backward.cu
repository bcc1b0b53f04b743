// CROSS_ENTROPY_BACKWARD: every element of dx follows from its own x, and from what its position has.
//
// Positions that lie side by side: a thread has one position, or four that one access moves together, and goes through
// the classes, eight loads at a time. Rows of classes: a thread has some 16 bytes of neighbouring elements, whichever
// rows they belong to, and reads what a row has as it enters the row. So a row need not begin at a multiple of 16
// bytes.
//
// dx may be x: a thread reads its elements before it writes them.
#include <cstdint>
#include <limits>

#include "common/class_scores.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/alignment.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "divider.cuh"
#include "kernels.hpp"
#include "pack.cuh"
#include "softmax/class_targets.cuh"
#include "softmax/warp_rows.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

constexpr int kPacksAtOnce = 4;

struct SlopeInputs {
  ClassTargets targets;
  const float* dloss;
  const float* lse;
  const float* total;  // the sum of the weights; null if all are 1, or without smoothing
};

// What the gradient of one position follows from.
struct PositionSlope {
  int32_t named = -1;  // -1: dx is 0
  float hit = 0.0F;    // (1 - smoothing) * weight of the label
  float lse = 0.0F;
  float dloss = 0.0F;

  __device__ __forceinline__ void load(const SlopeInputs& in, int64_t position) {
    named = in.targets.label[position];
    if (!in.targets.counts(named)) named = -1;
    hit = named < 0 ? 0.0F : (1.0F - in.targets.entropy.smoothing) * in.targets.weight_of(named);
    lse = in.lse[position];
    dloss = in.dloss[position];
  }

  // dx of class c. share is smoothing / classes, total the sum of the weights.
  __device__ __forceinline__ float at(float x, int64_t c, float share, float total, float weight) const {
    if (named < 0) return 0.0F;
    const float p = expf(x - lse);
    float slope = hit * (p - (c == named ? 1.0F : 0.0F));
    if (share > 0.0F) slope += share * (p * total - weight);
    return dloss * slope;
  }
};

__device__ __forceinline__ float total_of(const SlopeInputs& in) {
  return in.total != nullptr ? *in.total : static_cast<float>(in.targets.entropy.shape.classes);
}

template <class T, int width>
__global__ void __launch_bounds__(cuda::kThreads) slopes_of_positions(SlopeInputs in, const T* x, T* dx) {
  const ClassScores& shape = in.targets.entropy.shape;
  const PositionGroup group(shape, thread_index(), width);
  if (!group.there) return;
  PositionSlope slopes[width];
#pragma unroll
  for (int v = 0; v < width; ++v) slopes[v].load(in, group.position + v);
  const float share = in.targets.share(), total = total_of(in);
  for (int64_t begin = 0; begin < shape.classes; begin += kClassesAtOnce) {
    Pack<T, width> packs[kClassesAtOnce];
#pragma unroll
    for (int k = 0; k < kClassesAtOnce; ++k) {
      if (begin + k >= shape.classes) break;
      packs[k] = *reinterpret_cast<const Pack<T, width>*>(x + group.first + (begin + k) * shape.inner);
    }
#pragma unroll
    for (int k = 0; k < kClassesAtOnce; ++k) {
      if (begin + k >= shape.classes) break;
      const int64_t c = begin + k;
      const float weight = share > 0.0F ? in.targets.weight_of(c) : 1.0F;
      Pack<T, width> result;
#pragma unroll
      for (int v = 0; v < width; ++v) {
        const auto value = static_cast<float>(packs[k].values[v]);
        result.values[v] = static_cast<T>(slopes[v].at(value, c, share, total, weight));
      }
      *reinterpret_cast<Pack<T, width>*>(dx + group.first + c * shape.inner) = result;
    }
  }
}

// x[rows, classes] as one line of elements.
template <class T, int width>
__global__ void __launch_bounds__(cuda::kThreads)
    slopes_of_rows(SlopeInputs in, Divider by_classes, const T* x, T* dx) {
  const ClassScores& shape = in.targets.entropy.shape;
  const auto classes = static_cast<int>(shape.classes), elements = static_cast<int>(shape.elements());
  const float share = in.targets.share(), total = total_of(in);
  const int64_t first = (int64_t{blockIdx.x} * kPacksAtOnce * cuda::kThreads + threadIdx.x) * width;
  constexpr int64_t kStep = int64_t{cuda::kThreads} * width;
  const int64_t end = elements / width * width;
  const auto slope_at = [&](PositionSlope& slope, int& row, int& c, float value) {
    const float result = slope.at(value, c, share, total, share > 0.0F ? in.targets.weight_of(c) : 1.0F);
    if (++c == classes && ++row < shape.outer) slope.load(in, row);
    if (c == classes) c = 0;
    return result;
  };
  Pack<T, width> packs[kPacksAtOnce];
#pragma unroll
  for (int s = 0; s < kPacksAtOnce; ++s) {
    if (first + s * kStep >= end) break;
    packs[s] = *reinterpret_cast<const Pack<T, width>*>(x + first + s * kStep);
  }
#pragma unroll
  for (int s = 0; s < kPacksAtOnce; ++s) {
    const int64_t i = first + s * kStep;
    if (i >= end) break;
    auto [row, c] = by_classes(static_cast<int>(i));
    PositionSlope slope;
    slope.load(in, row);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      packs[s].values[k] = static_cast<T>(slope_at(slope, row, c, static_cast<float>(packs[s].values[k])));
    }
    *reinterpret_cast<Pack<T, width>*>(dx + i) = packs[s];
  }
  const int64_t i = end + threadIdx.x;
  if (blockIdx.x != 0 || i >= elements) return;  // the last, which fill no pack
  auto [row, c] = by_classes(static_cast<int>(i));
  PositionSlope slope;
  slope.load(in, row);
  dx[i] = static_cast<T>(slope_at(slope, row, c, static_cast<float>(x[i])));
}

// In one block.
__global__ void __launch_bounds__(1024) sum_class_weights(const float* weight, int64_t classes, float* total) {
  __shared__ float of_warp[kWarp];
  float sum = 0.0F;
  for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) sum += weight[c];
  sum = sum_among<kWarp>(sum);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  sum = sum_among<kWarp>(of_warp[threadIdx.x]);
  if (threadIdx.x == 0) *total = sum;
}

template <class T>
void run_positions_backward(const SlopeInputs& in, const T* x, T* dx, cudaStream_t stream) {
  const ClassScores& shape = in.targets.entropy.shape;
  constexpr int kWidth = 4;
  const bool packed = shape.inner % kWidth == 0 && are_aligned({x, dx}, kWidth * sizeof(T));
  if (packed && shape.positions() >= kManyPositions) {
    launch(slopes_of_positions<T, kWidth>, thread_each(shape.positions() / kWidth), stream, in, x, dx);
  } else {
    launch(slopes_of_positions<T, 1>, thread_each(shape.positions()), stream, in, x, dx);
  }
}

template <class T, int width>
void launch_rows_backward(const SlopeInputs& in, const T* x, T* dx, cudaStream_t stream) {
  const ClassScores& shape = in.targets.entropy.shape;
  constexpr int64_t kOfBlock = int64_t{cuda::kThreads} * width * kPacksAtOnce;
  launch(slopes_of_rows<T, width>, block_each(divide_up(shape.elements(), kOfBlock)), stream, in,
         Divider(shape.classes), x, dx);
}

template <class T>
void run_rows_backward(const SlopeInputs& in, const T* x, T* dx, cudaStream_t stream) {
  if (are_aligned({x, dx}, 16)) return launch_rows_backward<T, 16 / sizeof(T)>(in, x, dx, stream);
  launch_rows_backward<T, 1>(in, x, dx, stream);
}

struct SlopePlan {
  CrossEntropy entropy;
  uint64_t workspace_bytes = sizeof(float);
};

template <class T>
void run_dense_cross_entropy_backward(const SlopePlan& plan, cudaStream_t stream, const OpArgs& args) {
  const CrossEntropy& entropy = plan.entropy;
  if (entropy.shape.elements() == 0) return;
  const auto* weight = entropy.weighted ? args.in<float>(4) : nullptr;
  auto* total = weight != nullptr && entropy.smoothing > 0.0F ? args.workspace<float>() : nullptr;
  if (total != nullptr) {
    launch(sum_class_weights, block_each(1, 1024), stream, weight, entropy.shape.classes, total);
  }
  const SlopeInputs in{{entropy, args.in<int32_t>(2), weight}, args.in<float>(0), args.in<float>(3), total};
  if (entropy.shape.inner == 1) return run_rows_backward(in, args.in<T>(1), args.out<T>(0), stream);
  run_positions_backward(in, args.in<T>(1), args.out<T>(0), stream);
}

SlopePlan plan_dense_cross_entropy_backward(const OpDesc& desc) {
  const SlopePlan plan{dense_cross_entropy_backward_of(desc)};
  const ClassScores& shape = plan.entropy.shape;
  require(shape.inner != 1 || shape.elements() < std::numeric_limits<int32_t>::max(), "is for fewer than 2^31 scores");
  require(shape.positions() < (int64_t{1} << 33), "wants fewer positions");
  return plan;
}

}  // namespace

void add_dense_cross_entropy_backward_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_CROSS_ENTROPY_BACKWARD, "cross_entropy_backward", plan_dense_cross_entropy_backward,
         each_floating([](auto x) { return run_dense_cross_entropy_backward<decltype(x)>; }, 1), Dtypes::floating,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_tiled
