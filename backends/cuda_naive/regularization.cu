// CLIP_NORM and L1_GRADIENT over flat vectors. One thread computes one element.
//
// Neighbouring threads compute neighbouring elements, so the accesses are coalesced and the time is that of moving the
// bytes. Each thread of CLIP_NORM computes the factor itself, from a norm that is in the cache after the first read. A
// division is cheaper than a separate kernel, and the host never waits to see the norm. The next version would move
// both ops into the optimizer's kernel, which reads the gradient anyway.
#include "common/optimizer.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

__global__ void clip_norm(gpunn_clip_norm_attrs attrs, const float* x, const float* norm, float* y, int64_t n) {
  const int64_t i = thread_index();
  if (i >= n) return;
  float factor = 1.0F;
  if (isfinite(*norm)) {
    factor = attrs.max_norm / (*norm + attrs.epsilon);
    if (attrs.rescale == 0) factor = fminf(factor, 1.0F);
  }
  y[i] = x[i] * factor;
}

__global__ void l1_gradient(float weight, const float* w, float* g, int64_t decayed) {
  const int64_t i = thread_index();
  if (i >= decayed) return;
  g[i] += w[i] > 0.0F ? weight : w[i] < 0.0F ? -weight : 0.0F;
}

void run_clip_norm(const ClipNorm& plan, cudaStream_t stream, const OpArgs& args) {
  launch(clip_norm, thread_each(plan.n), stream, plan.attrs, args.in<float>(0), args.in<float>(1), args.out<float>(0),
         plan.n);
}

void run_l1_gradient(const L1Gradient& plan, cudaStream_t stream, const OpArgs& args) {
  launch(l1_gradient, thread_each(plan.decayed), stream, plan.weight, args.in<float>(1), args.out<float>(0),
         plan.decayed);
}

}  // namespace

void add_regularization_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_CLIP_NORM, "clip_norm", clip_norm_of, run_clip_norm);
  add_op(device, GPUNN_OP_L1_GRADIENT, "l1_gradient", l1_gradient_of, run_l1_gradient);
}

}  // namespace gpunn::cuda_naive
