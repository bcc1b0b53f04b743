// HINGE_LOSS and its gradient. One thread block computes one row: its threads stride through the classes together, so
// the reads are coalesced. All threads read the label and its score, which takes one transaction a warp and comes from
// the cache after the first.
//
// A label comes from memory and may have any value. A label that names no class makes the row's loss NaN and its
// gradient 0, and is never used as an address. All threads of a block see the same label, so either all of them or none
// take part in the reduction.
#include "block_tree.cuh"
#include "common/loss.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

__device__ bool names_known_class(int32_t label, int64_t classes) { return label >= 0 && label < classes; }

__global__ void hinge(const float* x, const int32_t* label, float* loss, Hinge plan) {
  const int64_t classes = plan.shape.columns;
  for (int64_t row = blockIdx.x; row < plan.shape.rows; row += gridDim.x) {
    const float* in = x + row * classes;
    const int32_t own = label[row];
    if (!names_known_class(own, classes)) {
      if (threadIdx.x == 0) loss[row] = NAN;
      continue;
    }
    const float floor = in[own] - plan.margin;
    float sum = 0.0F;
    for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
      const float above = in[c] - floor;
      if (c != own && !(above <= 0.0F)) sum += plan.power == 2 ? above * above : above;  // this way a NaN counts
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) loss[row] = sum / static_cast<float>(classes);
  }
}

// What the label's score gets back is known when all the others are.
__global__ void hinge_backward(const float* dloss, const float* x, const int32_t* label, float* dx, Hinge plan) {
  const int64_t classes = plan.shape.columns;
  for (int64_t row = blockIdx.x; row < plan.shape.rows; row += gridDim.x) {
    const float* in = x + row * classes;
    float* out = dx + row * classes;
    const int32_t own = label[row];
    const bool known = names_known_class(own, classes);
    const float floor = known ? in[own] - plan.margin : 0.0F;
    const float factor = dloss[row] / static_cast<float>(classes);
    float sum = 0.0F;
    for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
      if (known && c == own) continue;
      const float above = in[c] - floor;
      float slope = 0.0F;
      if (known && !(above <= 0.0F)) slope = factor * (plan.power == 2 ? 2.0F * above : 1.0F);
      out[c] = slope;
      sum += slope;
    }
    sum = block_sum(sum);
    if (known && threadIdx.x == 0) out[own] = -sum;
  }
}

void run_hinge(const Hinge& plan, cudaStream_t stream, const OpArgs& args) {
  launch(hinge, tree_each(plan.shape.rows, plan.shape.columns), stream, args.in<float>(0), args.in<int32_t>(1),
         args.out<float>(0), plan);
}

void run_hinge_backward(const Hinge& plan, cudaStream_t stream, const OpArgs& args) {
  launch(hinge_backward, tree_each(plan.shape.rows, plan.shape.columns), stream, args.in<float>(0), args.in<float>(1),
         args.in<int32_t>(2), args.out<float>(0), plan);
}

}  // namespace

void add_hinge_loss_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_HINGE_LOSS, "hinge_loss", hinge_of, run_hinge);
  add_op(device, GPUNN_OP_HINGE_LOSS_BACKWARD, "hinge_loss_backward", hinge_backward_of, run_hinge_backward);
}

}  // namespace gpunn::cuda_naive
