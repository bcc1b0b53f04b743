// SOFTMAX, LOG_SOFTMAX and their backwards, over the last dimension; a task some rows.
#include "simd/softmax.hpp"

#include <gpunn/plugin.hpp>

#include "add_op.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

// An exponential is worth several plain operations.
constexpr int64_t kSoftmaxGrain = kGrain / 2;

struct SoftmaxPlan {
  int64_t rows = 0;
  int64_t columns = 0;
  const SoftmaxKernels* kernels = nullptr;
};

SoftmaxPlan plan_rows(const OpDesc& desc, std::size_t inputs) {
  require_tensors(desc, inputs, inputs, 1);
  const gpunn_tensor& y = desc.output(0);
  require_packed(y, GPUNN_F32, "the output");
  for (std::size_t i = 0; i < inputs; ++i) {
    require_packed(desc.input(i), GPUNN_F32, "an input");
    require_same_shape(desc.input(i), y, "inputs and output");
  }
  require(y.rank >= 1, "a scalar has no last dimension");
  SoftmaxPlan plan;
  plan.columns = y.dim[y.rank - 1];
  require(plan.columns >= 1, "the last dimension must not be empty");
  plan.rows = plugin::element_count(y) / plan.columns;
  plan.kernels = &GPUNN_SELECT_ISA(softmax_kernels);
  return plan;
}

SoftmaxPlan plan_forward(const OpDesc& desc) { return plan_rows(desc, 1); }
SoftmaxPlan plan_backward(const OpDesc& desc) { return plan_rows(desc, 2); }

template <class Body>
void for_rows(const SoftmaxPlan& plan, const Body& body) {
  parallel_ranges(plan.rows, rows_per_task(plan.columns, kSoftmaxGrain),
                  [&](int64_t begin, int64_t end) { body(begin * plan.columns, end - begin); });
}

void run_softmax(const SoftmaxPlan& plan, const OpArgs& args) {
  for_rows(plan, [&](int64_t offset, int64_t rows) {
    plan.kernels->softmax(args.in<float>(0) + offset, args.out<float>(0) + offset, rows, plan.columns);
  });
}

void run_softmax_backward(const SoftmaxPlan& plan, const OpArgs& args) {
  for_rows(plan, [&](int64_t offset, int64_t rows) {
    plan.kernels->softmax_backward(args.in<float>(0) + offset, args.in<float>(1) + offset, args.out<float>(0) + offset,
                                   rows, plan.columns);
  });
}

void run_log_softmax(const SoftmaxPlan& plan, const OpArgs& args) {
  for_rows(plan, [&](int64_t offset, int64_t rows) {
    plan.kernels->log_softmax(args.in<float>(0) + offset, args.out<float>(0) + offset, rows, plan.columns);
  });
}

void run_log_softmax_backward(const SoftmaxPlan& plan, const OpArgs& args) {
  for_rows(plan, [&](int64_t offset, int64_t rows) {
    plan.kernels->log_softmax_backward(args.in<float>(0) + offset, args.in<float>(1) + offset,
                                       args.out<float>(0) + offset, rows, plan.columns);
  });
}

}  // namespace

void add_softmax_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SOFTMAX, plan_forward, run_softmax);
  add_op(device, GPUNN_OP_SOFTMAX_BACKWARD, plan_backward, run_softmax_backward);
  add_op(device, GPUNN_OP_LOG_SOFTMAX, plan_forward, run_log_softmax);
  add_op(device, GPUNN_OP_LOG_SOFTMAX_BACKWARD, plan_backward, run_log_softmax_backward);
}

}  // namespace gpunn::cpu
