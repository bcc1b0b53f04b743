// SOFTMAX, LOG_SOFTMAX and their backwards, over the last dimension; a task some rows.
#include "simd/softmax.hpp"

#include <gpunn/kernel.hpp>

#include "add_op.hpp"
#include "common/softmax.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// An exponential is worth several plain operations.
constexpr int64_t kSoftmaxGrain = kGrain / 2;

struct SoftmaxPlan {
  SoftmaxRows shape;
  const SoftmaxKernels* kernels = nullptr;
};

SoftmaxPlan make_plan(const SoftmaxRows& shape) {
  return {.shape = shape, .kernels = &GPUNN_SELECT_ISA(softmax_kernels)};
}

SoftmaxPlan plan_softmax(const OpDesc& desc) { return make_plan(softmax_of(desc)); }
SoftmaxPlan plan_softmax_backward(const OpDesc& desc) { return make_plan(softmax_backward_of(desc)); }

template <class Body>
void for_rows(const SoftmaxPlan& plan, const Body& body) {
  parallel_ranges(plan.shape.rows, rows_per_task(plan.shape.columns, kSoftmaxGrain),
                  [&](int64_t begin, int64_t end) { body(begin * plan.shape.columns, end - begin); });
}

void run_softmax(const SoftmaxPlan& plan, const OpArgs& args) {
  for_rows(plan, [&](int64_t offset, int64_t rows) {
    plan.kernels->softmax(args.in<float>(0) + offset, args.out<float>(0) + offset, rows, plan.shape.columns);
  });
}

void run_softmax_backward(const SoftmaxPlan& plan, const OpArgs& args) {
  for_rows(plan, [&](int64_t offset, int64_t rows) {
    plan.kernels->softmax_backward(args.in<float>(0) + offset, args.in<float>(1) + offset, args.out<float>(0) + offset,
                                   rows, plan.shape.columns);
  });
}

void run_log_softmax(const SoftmaxPlan& plan, const OpArgs& args) {
  for_rows(plan, [&](int64_t offset, int64_t rows) {
    plan.kernels->log_softmax(args.in<float>(0) + offset, args.out<float>(0) + offset, rows, plan.shape.columns);
  });
}

void run_log_softmax_backward(const SoftmaxPlan& plan, const OpArgs& args) {
  for_rows(plan, [&](int64_t offset, int64_t rows) {
    plan.kernels->log_softmax_backward(args.in<float>(0) + offset, args.in<float>(1) + offset,
                                       args.out<float>(0) + offset, rows, plan.shape.columns);
  });
}

}  // namespace

void add_softmax_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SOFTMAX, plan_softmax, run_softmax);
  add_op(device, GPUNN_OP_SOFTMAX_BACKWARD, plan_softmax_backward, run_softmax_backward);
  add_op(device, GPUNN_OP_LOG_SOFTMAX, plan_softmax, run_log_softmax);
  add_op(device, GPUNN_OP_LOG_SOFTMAX_BACKWARD, plan_softmax_backward, run_log_softmax_backward);
}

}  // namespace gpunn::cpu
