// NLL_LOSS, MSE_LOSS, SOFTMAX_CROSS_ENTROPY and their backwards, one loss a row.
//
// Labels come from device memory and are checked row by row: a label that names no class makes that row's loss NaN, so
// that training stops, and its gradient 0.
#include "simd/loss.hpp"

#include <gpunn/plugin.hpp>

#include <limits>

#include "add_op.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"
#include "simd/softmax.hpp"

namespace gpunn::cpu {
namespace {

struct LossPlan {
  int64_t rows = 0;
  int64_t columns = 0;
  const LossKernels* loss = nullptr;
  const SoftmaxKernels* softmax = nullptr;
};

// Of x[N,...] and one number a row.
LossPlan plan_rows(const gpunn_tensor& x, const gpunn_tensor& loss, const char* loss_name) {
  require_packed(x, GPUNN_F32, "the data");
  require_packed(loss, GPUNN_F32, loss_name);
  require(x.rank >= 1, "the data must be [N,...]");
  require_shape(loss, {x.dim[0]}, loss_name);
  LossPlan plan;
  plan.rows = x.dim[0];
  plan.columns = 1;
  for (int32_t i = 1; i < x.rank; ++i) plan.columns *= x.dim[i];
  require(plan.columns >= 1, "a row must not be empty");
  plan.loss = &GPUNN_SELECT_ISA(loss_kernels);
  plan.softmax = &GPUNN_SELECT_ISA(softmax_kernels);
  return plan;
}

LossPlan plan_classes(const gpunn_tensor& x, const gpunn_tensor& label, const gpunn_tensor& loss,
                      const char* loss_name) {
  require(x.rank == 2, "the data must be [N,C]");
  require_packed(label, GPUNN_I32, "label");
  require_shape(label, {x.dim[0]}, "label");
  return plan_rows(x, loss, loss_name);
}

float negative_log_likelihood(const LossPlan& plan, const float* logp, int32_t label) {
  return label >= 0 && label < plan.columns ? -logp[label] : std::numeric_limits<float>::quiet_NaN();
}

LossPlan plan_nll(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  return plan_classes(desc.input(0), desc.input(1), desc.output(0), "loss");
}

void run_nll(const LossPlan& plan, const OpArgs& args) {
  const auto* logp = args.in<float>(0);
  const auto* label = args.in<int32_t>(1);
  auto* loss = args.out<float>(0);
  for (int64_t row = 0; row < plan.rows; ++row) {
    loss[row] = negative_log_likelihood(plan, logp + row * plan.columns, label[row]);
  }
}

LossPlan plan_nll_backward(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_classes_attrs>(desc);
  require(desc.output(0).rank == 2 && desc.output(0).dim[1] == attrs.classes, "dlogp must be [N,classes]");
  return plan_classes(desc.output(0), desc.input(1), desc.input(0), "dloss");
}

void run_nll_backward(const LossPlan& plan, const OpArgs& args) {
  const auto* dloss = args.in<float>(0);
  const auto* label = args.in<int32_t>(1);
  auto* dlogp = args.out<float>(0);
  parallel_ranges(plan.rows, rows_per_task(plan.columns), [&](int64_t begin, int64_t end) {
    std::fill(dlogp + begin * plan.columns, dlogp + end * plan.columns, 0.0F);
    for (int64_t row = begin; row < end; ++row) {
      if (label[row] >= 0 && label[row] < plan.columns) dlogp[row * plan.columns + label[row]] = -dloss[row];
    }
  });
}

LossPlan plan_mse(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  require_packed(desc.input(1), GPUNN_F32, "target");
  require_same_shape(desc.input(0), desc.input(1), "x and target");
  return plan_rows(desc.input(0), desc.output(0), "loss");
}

void run_mse(const LossPlan& plan, const OpArgs& args) {
  const auto *x = args.in<float>(0), *target = args.in<float>(1);
  auto* loss = args.out<float>(0);
  const auto columns = static_cast<float>(plan.columns);
  parallel_ranges(plan.rows, rows_per_task(plan.columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t offset = row * plan.columns;
      loss[row] = plan.loss->squared_distance(x + offset, target + offset, plan.columns) / columns;
    }
  });
}

LossPlan plan_mse_backward(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  require_packed(desc.input(2), GPUNN_F32, "target");
  require_packed(desc.output(0), GPUNN_F32, "dx");
  require_same_shape(desc.input(1), desc.input(2), "x and target");
  require_same_shape(desc.input(1), desc.output(0), "x and dx");
  return plan_rows(desc.input(1), desc.input(0), "dloss");
}

void run_mse_backward(const LossPlan& plan, const OpArgs& args) {
  const auto *dloss = args.in<float>(0), *x = args.in<float>(1), *target = args.in<float>(2);
  auto* dx = args.out<float>(0);
  const float share = 2.0F / static_cast<float>(plan.columns);
  parallel_ranges(plan.rows, rows_per_task(plan.columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t offset = row * plan.columns;
      plan.loss->scaled_difference(x + offset, target + offset, share * dloss[row], dx + offset, plan.columns);
    }
  });
}

LossPlan plan_cross_entropy(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 2);
  require_packed(desc.output(1), GPUNN_F32, "logp");
  require_same_shape(desc.input(0), desc.output(1), "x and logp");
  return plan_classes(desc.input(0), desc.input(1), desc.output(0), "loss");
}

void run_cross_entropy(const LossPlan& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  const auto* label = args.in<int32_t>(1);
  auto *loss = args.out<float>(0), *logp = args.out<float>(1);
  parallel_ranges(plan.rows, rows_per_task(plan.columns, kGrain / 2), [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * plan.columns;
    plan.softmax->log_softmax(x + offset, logp + offset, end - begin, plan.columns);
    for (int64_t row = begin; row < end; ++row) {
      loss[row] = negative_log_likelihood(plan, logp + row * plan.columns, label[row]);
    }
  });
}

LossPlan plan_cross_entropy_backward(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  require_packed(desc.output(0), GPUNN_F32, "dx");
  require_same_shape(desc.input(1), desc.output(0), "logp and dx");
  return plan_classes(desc.input(1), desc.input(2), desc.input(0), "dloss");
}

void run_cross_entropy_backward(const LossPlan& plan, const OpArgs& args) {
  const auto *dloss = args.in<float>(0), *logp = args.in<float>(1);
  const auto* label = args.in<int32_t>(2);
  auto* dx = args.out<float>(0);
  parallel_ranges(plan.rows, rows_per_task(plan.columns, kGrain / 2), [&](int64_t begin, int64_t end) {
    const int64_t offset = begin * plan.columns;
    plan.softmax->cross_entropy_backward(dloss + begin, logp + offset, label + begin, dx + offset, end - begin,
                                         plan.columns);
  });
}

}  // namespace

void add_loss_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_NLL_LOSS, plan_nll, run_nll);
  add_op(device, GPUNN_OP_NLL_LOSS_BACKWARD, plan_nll_backward, run_nll_backward);
  add_op(device, GPUNN_OP_MSE_LOSS, plan_mse, run_mse);
  add_op(device, GPUNN_OP_MSE_LOSS_BACKWARD, plan_mse_backward, run_mse_backward);
  add_op(device, GPUNN_OP_SOFTMAX_CROSS_ENTROPY, plan_cross_entropy, run_cross_entropy);
  add_op(device, GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, plan_cross_entropy_backward, run_cross_entropy_backward);
}

}  // namespace gpunn::cpu
