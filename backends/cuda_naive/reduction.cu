// REDUCE over any axes, MEAN_ROWS and its gradient, and NORM.
//
// REDUCE has two forms. If an output has few terms, one thread computes it, since more threads would be idle. If it has
// many, one thread block computes it: thread t adds the terms t, t + 256, t + 512, ... and block_tree.cuh combines the
// 256 sums (or maxima). A long sum is thus split in 256 parts, which also rounds less than adding in sequence.
//
// If x's innermost dimension is reduced, the block's threads read neighbouring numbers: coalesced. If it is kept,
// neighbouring terms lie one row apart, and each thread fetches 32 bytes to use 4. In the next version a block would
// then compute 32 neighbouring outputs and walk down their rows together. If there are fewer outputs than
// multiprocessors, several blocks would share an output, and a second kernel would add their parts in order. The
// divisions that turn a term's number into its position cost more than the addition and would go.
#include <algorithm>
#include <cstdint>

#include "block_tree.cuh"
#include "common/reduction.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/combine.cuh"
#include "cuda_common/divide_up.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// Up to here a thread an output.
constexpr int64_t kFewTerms = 32;

// Where the element of that index lies.
__device__ int64_t offset(const Nest& nest, int64_t index) {
  int64_t sum = 0;
  for (int32_t i = nest.rank - 1; i >= 0; --i) {
    sum += index % nest.dim[i] * nest.stride[i];
    index /= nest.dim[i];
  }
  return sum;
}

__device__ float finish(const Reduce& plan, float total) {
  return plan.kind == GPUNN_REDUCE_MEAN ? total / static_cast<float>(plan.terms) : total;
}

template <class Combine>
__global__ void reduce_by_thread(const float* x, float* y, Reduce plan) {
  const int64_t output = thread_index();
  if (output >= plan.outputs) return;
  const Combine combine;
  const float* from = x + offset(plan.kept, output);
  float total = Combine::nothing();
  for (int64_t term = 0; term < plan.terms; ++term) total = combine(total, from[offset(plan.reduced, term)]);
  y[output] = finish(plan, total);
}

template <class Combine>
__global__ void reduce_by_block(const float* x, float* y, Reduce plan) {
  const Combine combine;
  const float* from = x + offset(plan.kept, blockIdx.x);
  float total = Combine::nothing();
  for (int64_t term = threadIdx.x; term < plan.terms; term += blockDim.x) {
    total = combine(total, from[offset(plan.reduced, term)]);
  }
  total = block_tree(total, combine);
  if (threadIdx.x == 0) y[blockIdx.x] = finish(plan, total);
}

template <class Combine>
void reduce(const Reduce& plan, cudaStream_t stream, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  if (plan.terms <= kFewTerms) {
    launch(reduce_by_thread<Combine>, thread_each(plan.outputs), stream, x, y, plan);
  } else {
    launch(reduce_by_block<Combine>, block_each(plan.outputs), stream, x, y, plan);
  }
}

void run_reduce(const Reduce& plan, cudaStream_t stream, const OpArgs& args) {
  if (plan.kind == GPUNN_REDUCE_MAX) {
    reduce<Larger>(plan, stream, args);
  } else {
    reduce<Sum>(plan, stream, args);
  }
}

// A count comes from device memory: beyond the rows it means all of them.
__device__ int64_t clamped(int32_t count, int64_t rows) { return min(max(int64_t{count}, int64_t{0}), rows); }

// One block, since a batch has some thousands of rows at most. In f64, as this is the number that people look at.
__global__ void mean_rows(const float* x, const int32_t* count, float* y, int64_t rows) {
  const int64_t n = clamped(*count, rows);
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += static_cast<double>(x[i]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) *y = n == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(n));
}

// All threads read the same dy and count: one transaction a warp, and after the first warp from the cache.
__global__ void mean_rows_backward(const float* dy, const int32_t* count, float* dx, int64_t rows) {
  const int64_t i = thread_index();
  if (i >= rows) return;
  const int64_t n = clamped(*count, rows);
  dx[i] = i < n ? *dy / static_cast<float>(n) : 0.0F;
}

void run_mean_rows(int64_t rows, cudaStream_t stream, const OpArgs& args) {
  launch(mean_rows, block_each(1), stream, args.in<float>(0), args.in<int32_t>(1), args.out<float>(0), rows);
}

void run_mean_rows_backward(int64_t rows, cudaStream_t stream, const OpArgs& args) {
  launch(mean_rows_backward, thread_each(rows), stream, args.in<float>(0), args.in<int32_t>(1), args.out<float>(0),
         rows);
}

// NORM is of millions of elements, all the gradients of a model, too many for a block: each of some blocks sums its
// share, and a second kernel, which begins when the first has ended, adds the blocks' sums. Both in an order that
// follows from the numbers of the blocks and threads, so the bits are the same in every run.
//
// A GPU runs some thousand blocks of 256 threads at once, so more would only make more sums. Neighbouring threads read
// neighbours: coalesced. In f64 no square overflows or vanishes; the time stays that of reading x, but for GPUs with
// few f64 units, where the next version would sum f32 in each thread and go to f64 in the tree.
constexpr int64_t kMostNormBlocks = 1024;

struct NormPlan {
  int64_t n = 0;
  int64_t blocks = 0;
  uint64_t workspace_bytes = 0;
};

NormPlan plan_norm(const OpDesc& desc) {
  const int64_t n = norm_of(desc);
  const int64_t blocks = std::clamp<int64_t>(cuda::divide_up(n, kThreads), 1, kMostNormBlocks);
  return {.n = n, .blocks = blocks, .workspace_bytes = static_cast<uint64_t>(blocks) * sizeof(double)};
}

__global__ void sum_of_squares(const float* x, double* sums, int64_t n) {
  double sum = 0.0;
  for (int64_t i = thread_index(); i < n; i += int64_t{gridDim.x} * blockDim.x) {
    const auto value = static_cast<double>(x[i]);
    sum += value * value;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// One block.
__global__ void root_of_sum(const double* sums, float* y, int64_t count) {
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *y = static_cast<float>(sqrt(sum));
}

void run_norm(const NormPlan& plan, cudaStream_t stream, const OpArgs& args) {
  auto* sums = args.workspace<double>();
  launch(sum_of_squares, block_each(plan.blocks), stream, args.in<float>(0), sums, plan.n);
  launch(root_of_sum, block_each(1), stream, sums, args.out<float>(0), plan.blocks);
}

}  // namespace

void add_reduction_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_REDUCE, "reduce", reduce_of, run_reduce, Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_MEAN_ROWS, "mean_rows", mean_rows_of, run_mean_rows);
  add_op(device, GPUNN_OP_MEAN_ROWS_BACKWARD, "mean_rows_backward", mean_rows_backward_of, run_mean_rows_backward);
  add_op(device, GPUNN_OP_NORM, "norm", plan_norm, run_norm);
}

}  // namespace gpunn::cuda_naive
