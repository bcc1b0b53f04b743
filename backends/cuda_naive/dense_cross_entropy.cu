// CROSS_ENTROPY and its gradient: one thread computes one position of the loss, or one element of dx.
//
// The classes of a position lie as far apart as there are positions, so neighbouring threads read neighbouring numbers,
// one class after the other. The loss reads x twice, and a third time with label smoothing; what no longer fits the
// caches comes from memory again. Rows x[N,C] are the bad case: the threads of a warp read numbers that lie a row
// apart. The next version would read x once, with a running maximum and sum, and give long rows to a thread block each.
//
// A label comes from memory and may have any value. It is compared with the number of classes before it is used.
#include <cmath>

#include "block_tree.cuh"
#include "common/class_scores.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// weight is null if all weights are 1.
__device__ float weight_of(const float* weight, int64_t c) { return weight != nullptr ? weight[c] : 1.0F; }

// x is NaN, +infinity, or -infinity only: then the sum, and all that follows from it, is NaN.
template <class T>
__global__ void cross_entropy_by_position(CrossEntropy plan, const T* x, const int32_t* label, const float* weight,
                                          float* loss, float* share, float* lse) {
  const ClassScores& shape = plan.shape;
  const int64_t i = thread_index();
  if (i >= shape.positions()) return;
  const T* scores = x + shape.first(i);
  const auto score = [&](int64_t c) { return static_cast<float>(scores[c * shape.inner]); };
  float largest = -INFINITY;
  for (int64_t c = 0; c < shape.classes; ++c) largest = fmaxf(largest, score(c));
  float sum = 0.0F;
  for (int64_t c = 0; c < shape.classes; ++c) sum += expf(score(c) - largest);
  const float log_sum = logf(sum);
  lse[i] = largest + log_sum;
  const int32_t named = label[i];
  if (!plan.counts(named)) {
    loss[i] = named == plan.ignore_index ? 0.0F : NAN;
    share[i] = 0.0F;
    return;
  }
  // lse - x in two steps, since lse loses the digits of the sum where x is large.
  const auto term = [&](int64_t c) { return weight_of(weight, c) * (log_sum - (score(c) - largest)); };
  float result = (1.0F - plan.smoothing) * term(named);
  if (plan.smoothing > 0.0F) {
    float all = 0.0F;
    for (int64_t c = 0; c < shape.classes; ++c) all += term(c);
    result += plan.smoothing / static_cast<float>(shape.classes) * all;
  }
  loss[i] = result;
  share[i] = weight_of(weight, named);
}

__global__ void sum_weights(const float* weight, int64_t classes, float* total) {
  float sum = 0.0F;
  for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) sum += weight[c];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = sum;
}

// dx may be x. total is the sum of the weights.
template <class T>
__global__ void cross_entropy_by_element(CrossEntropy plan, const float* dloss, const T* x, const int32_t* label,
                                         const float* lse, const float* weight, const float* total, T* dx) {
  const ClassScores& shape = plan.shape;
  const int64_t i = thread_index();
  if (i >= shape.elements()) return;
  const int64_t c = i / shape.inner % shape.classes;
  const int64_t position = i / (shape.inner * shape.classes) * shape.inner + i % shape.inner;
  const int32_t named = label[position];
  if (!plan.counts(named)) {
    dx[i] = static_cast<T>(0.0F);
    return;
  }
  const float p = expf(static_cast<float>(x[i]) - lse[position]);
  const float one_hot = c == named ? 1.0F : 0.0F;
  float slope = (1.0F - plan.smoothing) * weight_of(weight, named) * (p - one_hot);
  if (plan.smoothing > 0.0F) {
    const auto classes = static_cast<float>(shape.classes);
    const float weights = weight != nullptr ? *total : classes;
    slope += plan.smoothing / classes * (p * weights - weight_of(weight, c));
  }
  dx[i] = static_cast<T>(dloss[position] * slope);
}

template <class T>
void run_dense_cross_entropy(const CrossEntropy& plan, cudaStream_t stream, const OpArgs& args) {
  const auto* weight = plan.weighted ? args.in<float>(2) : nullptr;
  launch(cross_entropy_by_position<T>, thread_each(plan.shape.positions()), stream, plan, args.in<T>(0),
         args.in<int32_t>(1), weight, args.out<float>(0), args.out<float>(1), args.out<float>(2));
}

struct CrossEntropySlope {
  CrossEntropy entropy;
  uint64_t workspace_bytes = sizeof(float);
};

CrossEntropySlope slope_of(const OpDesc& desc) { return {dense_cross_entropy_backward_of(desc)}; }

template <class T>
void run_dense_cross_entropy_backward(const CrossEntropySlope& plan, cudaStream_t stream, const OpArgs& args) {
  const CrossEntropy& entropy = plan.entropy;
  if (entropy.shape.elements() == 0) return;
  const auto* weight = entropy.weighted ? args.in<float>(4) : nullptr;
  auto* total = args.workspace<float>();
  if (weight != nullptr && entropy.smoothing > 0.0F) {
    launch(sum_weights, block_each(1), stream, weight, entropy.shape.classes, total);
  }
  launch(cross_entropy_by_element<T>, thread_each(entropy.shape.elements()), stream, entropy, args.in<float>(0),
         args.in<T>(1), args.in<int32_t>(2), args.in<float>(3), weight, total, args.out<T>(0));
}

}  // namespace

void add_dense_cross_entropy_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_CROSS_ENTROPY, "cross_entropy", dense_cross_entropy_of,
         each_floating([](auto x) { return run_dense_cross_entropy<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_CROSS_ENTROPY_BACKWARD, "cross_entropy_backward", slope_of,
         each_floating([](auto x) { return run_dense_cross_entropy_backward<decltype(x)>; }, 1), Dtypes::floating,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_naive
