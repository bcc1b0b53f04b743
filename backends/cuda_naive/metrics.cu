// METRICS_ACCUMULATE, in one thread block: each thread handles every 256th row, then the trees of block_tree.cuh
// combine the results.
//
// A single block keeps the sums in one order, so that even the last digit of the loss is the same in every run. A batch
// has some thousands of rows at most. Each thread reads its own row of x, so the threads of a warp read numbers that
// lie one row apart. That is not coalesced, but with ten classes the cache serves the next accesses from the same
// lines. The next version would give each row to a warp, and run the op at the end of the loss kernel, which has x in
// registers.
#include "block_tree.cuh"
#include "common/metrics.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// How many classes come before the label: a larger x, or an equal one and a smaller index. All with a NaN in the row.
__device__ int64_t rank_of(const float* x, int64_t label, int64_t classes) {
  const float own = x[label];
  int64_t rank = 0;
  bool nan = false;
  for (int64_t c = 0; c < classes; ++c) {
    nan = nan || isnan(x[c]);
    rank += x[c] > own || (x[c] == own && c < label) ? 1 : 0;
  }
  return nan ? classes : rank;
}

// x and label are null where there are no classes.
__global__ void metrics(Metrics plan, const float* loss, const int32_t* count, const float* x, const int32_t* label,
                        double* totals) {
  const int64_t n = min(max(int64_t{*count}, int64_t{0}), plan.rows);
  double sum = 0.0;
  int64_t first = 0;
  int64_t top5 = 0;
  for (int64_t row = threadIdx.x; row < n; row += blockDim.x) {
    sum += static_cast<double>(loss[row]);
    // A label that names no class has no rank and counts nowhere.
    if (plan.classes == 0 || label[row] < 0 || label[row] >= plan.classes) continue;
    const int64_t rank = rank_of(x + row * plan.classes, label[row], plan.classes);
    first += rank == 0 ? 1 : 0;
    top5 += rank < 5 ? 1 : 0;
  }
  sum = block_sum(sum);
  first = block_sum(first);
  top5 = block_sum(top5);
  if (threadIdx.x != 0) return;
  totals[0] += sum;
  totals[1] += static_cast<double>(first);
  totals[2] += static_cast<double>(top5);
  totals[3] += static_cast<double>(n);
}

void run_metrics(const Metrics& plan, cudaStream_t stream, const OpArgs& args) {
  const auto* x = plan.classes > 0 ? args.in<float>(3) : nullptr;
  const auto* label = plan.classes > 0 ? args.in<int32_t>(4) : nullptr;
  launch(metrics, block_each(1), stream, plan, args.in<float>(0), args.in<int32_t>(1), x, label, args.out<double>(0));
}

}  // namespace

void add_metrics_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_METRICS_ACCUMULATE, "metrics_accumulate", metrics_of, run_metrics);
}

}  // namespace gpunn::cuda_naive
