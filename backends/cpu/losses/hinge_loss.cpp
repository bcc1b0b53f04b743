// HINGE_LOSS and its backward: the classes before the label and those behind it, a task some rows.
//
// Labels come from device memory and are checked row by row: a label that names no class makes that row's loss NaN, so
// that training stops, and its gradient 0.
#include <gpunn/kernel.hpp>

#include <algorithm>
#include <limits>

#include "add_op.hpp"
#include "common/loss.hpp"
#include "kernels.hpp"
#include "simd/pointwise_loss.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

const PointwiseLossKernels& simd_hinge_loss() { return GPUNN_SELECT_ISA(pointwise_loss_kernels); }

bool names_class(const Hinge& plan, int32_t label) { return label >= 0 && label < plan.shape.columns; }

void run_hinge(const Hinge& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  const auto* label = args.in<int32_t>(1);
  auto* loss = args.out<float>(0);
  const int64_t columns = plan.shape.columns;
  parallel_ranges(plan.shape.rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (!names_class(plan, label[row])) {
        loss[row] = std::numeric_limits<float>::quiet_NaN();
        continue;
      }
      const float* in = x + row * columns;
      const int64_t own = label[row];
      const float floor = in[own] - plan.margin;
      const float sum = simd_hinge_loss().hinge(in, floor, plan.power, own) +
                        simd_hinge_loss().hinge(in + own + 1, floor, plan.power, columns - own - 1);
      loss[row] = sum / static_cast<float>(columns);
    }
  });
}

void run_hinge_backward(const Hinge& plan, const OpArgs& args) {
  const auto *dloss = args.in<float>(0), *x = args.in<float>(1);
  const auto* label = args.in<int32_t>(2);
  auto* dx = args.out<float>(0);
  const int64_t columns = plan.shape.columns;
  parallel_ranges(plan.shape.rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* in = x + row * columns;
      float* out = dx + row * columns;
      if (!names_class(plan, label[row])) {
        std::fill(out, out + columns, 0.0F);
        continue;
      }
      const int64_t own = label[row];
      const float floor = in[own] - plan.margin;
      const float factor = dloss[row] / static_cast<float>(columns);
      const float before = simd_hinge_loss().hinge_gradient(in, floor, plan.power, factor, out, own);
      const float behind =
          simd_hinge_loss().hinge_gradient(in + own + 1, floor, plan.power, factor, out + own + 1, columns - own - 1);
      out[own] = -(before + behind);
    }
  });
}

}  // namespace

void add_hinge_loss_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_HINGE_LOSS, hinge_of, run_hinge);
  add_op(device, GPUNN_OP_HINGE_LOSS_BACKWARD, hinge_backward_of, run_hinge_backward);
}

}  // namespace gpunn::cpu
