// CLIP_NORM and L1_GRADIENT over flat vectors.
#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cmath>

#include "add_op.hpp"
#include "common/optimizer.hpp"
#include "kernels.hpp"
#include "simd/optimizer.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

const OptimizerKernels& simd_regularization() { return GPUNN_SELECT_ISA(optimizer_kernels); }

void run_clip_norm(const ClipNorm& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  const float norm = *args.in<float>(1);
  auto* y = args.out<float>(0);
  float factor = 1.0F;
  if (std::isfinite(norm)) {
    factor = plan.attrs.max_norm / (norm + plan.attrs.epsilon);
    if (plan.attrs.rescale == 0) factor = std::min(factor, 1.0F);
  }
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) {
    simd_regularization().scale(factor, x + begin, y + begin, end - begin);
  });
}

void run_l1_gradient(const L1Gradient& plan, const OpArgs& args) {
  const auto* w = args.in<float>(1);
  auto* g = args.out<float>(0);
  parallel_ranges(plan.decayed, kGrain, [&](int64_t begin, int64_t end) {
    simd_regularization().add_sign(plan.weight, w + begin, g + begin, end - begin);
  });
}

}  // namespace

void add_regularization_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_CLIP_NORM, clip_norm_of, run_clip_norm);
  add_op(device, GPUNN_OP_L1_GRADIENT, l1_gradient_of, run_l1_gradient);
}

}  // namespace gpunn::cpu
