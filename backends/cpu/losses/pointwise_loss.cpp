// BCE_LOGITS_LOSS, HUBER_LOSS and their backwards: means over a row; a task some rows.
#include "simd/pointwise_loss.hpp"

#include <gpunn/kernel.hpp>

#include "add_op.hpp"
#include "common/loss.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

const PointwiseLossKernels& simd_pointwise_loss() { return GPUNN_SELECT_ISA(pointwise_loss_kernels); }

// loss[row] = sum(x, target, columns) / columns
template <class Sum>
void mean_by_row(const LossRows& shape, const OpArgs& args, const Sum& sum) {
  const auto *x = args.in<float>(0), *target = args.in<float>(1);
  auto* loss = args.out<float>(0);
  const int64_t columns = shape.columns;
  parallel_ranges(shape.rows, rows_per_task(columns, kGrain / 2), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      loss[row] = sum(x + row * columns, target + row * columns, columns) / static_cast<float>(columns);
    }
  });
}

// gradient(x, target, dloss[row] / columns, dx, columns)
template <class Gradient>
void gradient_by_row(const LossRows& shape, const OpArgs& args, const Gradient& gradient) {
  const auto *dloss = args.in<float>(0), *x = args.in<float>(1), *target = args.in<float>(2);
  auto* dx = args.out<float>(0);
  const int64_t columns = shape.columns;
  parallel_ranges(shape.rows, rows_per_task(columns, kGrain / 2), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t offset = row * columns;
      gradient(x + offset, target + offset, dloss[row] / static_cast<float>(columns), dx + offset, columns);
    }
  });
}

void run_bce(const LossRows& shape, const OpArgs& args) { mean_by_row(shape, args, simd_pointwise_loss().bce); }

void run_bce_backward(const LossRows& shape, const OpArgs& args) {
  gradient_by_row(shape, args, simd_pointwise_loss().bce_gradient);
}

void run_huber(const Huber& plan, const OpArgs& args) {
  mean_by_row(plan.shape, args, [&plan](const float* x, const float* target, int64_t n) {
    return simd_pointwise_loss().huber(x, target, plan.delta, n);
  });
}

void run_huber_backward(const Huber& plan, const OpArgs& args) {
  gradient_by_row(plan.shape, args, [&plan](const float* x, const float* target, float factor, float* dx, int64_t n) {
    simd_pointwise_loss().huber_gradient(x, target, plan.delta, factor, dx, n);
  });
}

}  // namespace

void add_pointwise_loss_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_BCE_LOGITS_LOSS, loss_of, run_bce);
  add_op(device, GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, loss_backward_of, run_bce_backward);
  add_op(device, GPUNN_OP_HUBER_LOSS, huber_of, run_huber);
  add_op(device, GPUNN_OP_HUBER_LOSS_BACKWARD, huber_backward_of, run_huber_backward);
}

}  // namespace gpunn::cpu
