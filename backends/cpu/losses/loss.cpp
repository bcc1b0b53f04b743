// NLL_LOSS, MSE_LOSS, SOFTMAX_CROSS_ENTROPY, SOFT_CROSS_ENTROPY and their backwards, one loss a row.
//
// Labels come from device memory and are checked row by row: a label that names no class makes that row's loss NaN, so
// that training stops, and its gradient 0.
#include "simd/loss.hpp"

#include <gpunn/kernel.hpp>

#include <limits>

#include "add_op.hpp"
#include "common/loss.hpp"
#include "kernels.hpp"
#include "simd/softmax.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

struct LossPlan {
  LossRows shape;
  const LossKernels* loss = nullptr;
  const SoftmaxKernels* softmax = nullptr;
};

template <LossRows (*rows_of)(const OpDesc&)>
LossPlan plan(const OpDesc& desc) {
  return {
      .shape = rows_of(desc), .loss = &GPUNN_SELECT_ISA(loss_kernels), .softmax = &GPUNN_SELECT_ISA(softmax_kernels)};
}

float negative_log_likelihood(const LossPlan& plan, const float* logp, int32_t label) {
  return label >= 0 && label < plan.shape.columns ? -logp[label] : std::numeric_limits<float>::quiet_NaN();
}

void run_nll(const LossPlan& plan, const OpArgs& args) {
  const auto* logp = args.in<float>(0);
  const auto* label = args.in<int32_t>(1);
  auto* loss = args.out<float>(0);
  for (int64_t row = 0; row < plan.shape.rows; ++row) {
    loss[row] = negative_log_likelihood(plan, logp + row * plan.shape.columns, label[row]);
  }
}

void run_nll_backward(const LossPlan& plan, const OpArgs& args) {
  const auto* dloss = args.in<float>(0);
  const auto* label = args.in<int32_t>(1);
  auto* dlogp = args.out<float>(0);
  parallel_ranges(plan.shape.rows, rows_per_task(plan.shape.columns), [&](int64_t begin, int64_t end) {
    std::fill(dlogp + begin * plan.shape.columns, dlogp + end * plan.shape.columns, 0.0F);
    for (int64_t row = begin; row < end; ++row) {
      if (label[row] >= 0 && label[row] < plan.shape.columns)
        dlogp[row * plan.shape.columns + label[row]] = -dloss[row];
    }
  });
}

void run_mse(const LossPlan& plan, const OpArgs& args) {
  const auto *x = args.in<float>(0), *target = args.in<float>(1);
  auto* loss = args.out<float>(0);
  const auto columns = static_cast<float>(plan.shape.columns);
  parallel_ranges(plan.shape.rows, rows_per_task(plan.shape.columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t offset = row * plan.shape.columns;
      loss[row] = plan.loss->squared_distance(x + offset, target + offset, plan.shape.columns) / columns;
    }
  });
}

void run_mse_backward(const LossPlan& plan, const OpArgs& args) {
  const auto *dloss = args.in<float>(0), *x = args.in<float>(1), *target = args.in<float>(2);
  auto* dx = args.out<float>(0);
  const float share = 2.0F / static_cast<float>(plan.shape.columns);
  parallel_ranges(plan.shape.rows, rows_per_task(plan.shape.columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t offset = row * plan.shape.columns;
      plan.loss->scaled_difference(x + offset, target + offset, share * dloss[row], dx + offset, plan.shape.columns);
    }
  });
}

void run_cross_entropy(const LossPlan& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  const auto* label = args.in<int32_t>(1);
  auto *loss = args.out<float>(0), *logp = args.out<float>(1);
  parallel_ranges(plan.shape.rows, rows_per_task(plan.shape.columns, kGrain / 2), [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * plan.shape.columns;
    plan.softmax->log_softmax(x + offset, logp + offset, end - begin, plan.shape.columns);
    for (int64_t row = begin; row < end; ++row) {
      loss[row] = negative_log_likelihood(plan, logp + row * plan.shape.columns, label[row]);
    }
  });
}

void run_cross_entropy_backward(const LossPlan& plan, const OpArgs& args) {
  const auto *dloss = args.in<float>(0), *logp = args.in<float>(1);
  const auto* label = args.in<int32_t>(2);
  auto* dx = args.out<float>(0);
  parallel_ranges(plan.shape.rows, rows_per_task(plan.shape.columns, kGrain / 2), [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * plan.shape.columns;
    plan.softmax->cross_entropy_backward(dloss + begin, logp + offset, label + begin, dx + offset, end - begin,
                                         plan.shape.columns);
  });
}

void run_soft_cross_entropy(const LossPlan& plan, const OpArgs& args) {
  const auto *x = args.in<float>(0), *target = args.in<float>(1);
  auto *loss = args.out<float>(0), *logp = args.out<float>(1);
  const int64_t columns = plan.shape.columns;
  parallel_ranges(plan.shape.rows, rows_per_task(columns, kGrain / 2), [&](int64_t begin, int64_t end) {
    plan.softmax->log_softmax(x + begin * columns, logp + begin * columns, end - begin, columns);
    for (int64_t row = begin; row < end; ++row) {
      loss[row] = -plan.loss->log_likelihood(target + row * columns, logp + row * columns, columns);
    }
  });
}

void run_soft_cross_entropy_backward(const LossPlan& plan, const OpArgs& args) {
  const auto *dloss = args.in<float>(0), *logp = args.in<float>(1), *target = args.in<float>(2);
  auto* dx = args.out<float>(0);
  const int64_t columns = plan.shape.columns;
  parallel_ranges(plan.shape.rows, rows_per_task(columns, kGrain / 2), [&](int64_t begin, int64_t end) {
    plan.softmax->exp(logp + begin * columns, dx + begin * columns, (end - begin) * columns);
    for (int64_t row = begin; row < end; ++row) {
      plan.loss->soft_gradient(target + row * columns, dloss[row], dx + row * columns, columns);
    }
  });
}

}  // namespace

void add_loss_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_NLL_LOSS, plan<loss_of>, run_nll);
  add_op(device, GPUNN_OP_NLL_LOSS_BACKWARD, plan<loss_backward_of>, run_nll_backward);
  add_op(device, GPUNN_OP_MSE_LOSS, plan<loss_of>, run_mse);
  add_op(device, GPUNN_OP_MSE_LOSS_BACKWARD, plan<loss_backward_of>, run_mse_backward);
  add_op(device, GPUNN_OP_SOFTMAX_CROSS_ENTROPY, plan<loss_of>, run_cross_entropy);
  add_op(device, GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, plan<loss_backward_of>, run_cross_entropy_backward);
  add_op(device, GPUNN_OP_SOFT_CROSS_ENTROPY, plan<loss_of>, run_soft_cross_entropy);
  add_op(device, GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, plan<loss_backward_of>, run_soft_cross_entropy_backward);
}

}  // namespace gpunn::cpu
