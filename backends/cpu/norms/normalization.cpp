// BATCH_NORM, BATCH_NORM_BACKWARD and BATCH_NORM_INFERENCE.
#include "common/normalization.hpp"

#include <gpunn/kernel.hpp>

#include "add_op.hpp"
#include "kernels.hpp"
#include "norms/batch_norm.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

template <class T>
void run_norm(const BatchNormPlan& plan, const OpArgs& args) {
  run_batch_norm(plan, BatchNormForward<T>{.x = args.in<T>(0),
                                           .gamma = args.in<float>(1),
                                           .beta = args.in<float>(2),
                                           .count = plan.shape.counted ? args.in<int32_t>(5) : nullptr,
                                           .other = nullptr,
                                           .relu = false,
                                           .y = args.out<T>(0),
                                           .mean = args.out<float>(1),
                                           .rstd = args.out<float>(2),
                                           .running_mean = args.out<float>(3),
                                           .running_var = args.out<float>(4),
                                           .workspace = args.workspace<void>()});
}

template <class T>
void run_norm_backward(const BatchNormPlan& plan, const OpArgs& args) {
  run_batch_norm_backward(plan, BatchNormBackward<T>{.dy = args.in<T>(0),
                                                     .more_dy = nullptr,
                                                     .relu_y = nullptr,
                                                     .masked = nullptr,
                                                     .x = args.in<T>(1),
                                                     .gamma = args.in<float>(2),
                                                     .mean = args.in<float>(3),
                                                     .rstd = args.in<float>(4),
                                                     .count = plan.shape.counted ? args.in<int32_t>(5) : nullptr,
                                                     .dx = args.out<T>(0),
                                                     .dgamma = args.out<float>(1),
                                                     .dbeta = args.out<float>(2),
                                                     .workspace = args.workspace<void>()});
}

template <class T>
void run_norm_inference(const BatchNormPlan& plan, const OpArgs& args) {
  run_batch_norm_inference(plan, args.in<T>(0), args.in<float>(1), args.in<float>(2), args.in<float>(3),
                           args.in<float>(4), args.out<T>(0), args.workspace<void>());
}

}  // namespace

void add_normalization_kernels(plugin::Device& device) {
  const int threads = thread_count();
  const auto add = [&](int32_t op, BatchNorm (*shape_of)(const OpDesc&), auto run) {
    serve(
        device, op,
        [shape_of, threads](const OpDesc& desc) {
          return plan_batch_norm(shape_of(desc), desc.input(0).dtype, false, threads);
        },
        each_floating(run), Dtypes::floating, Layouts::channels_last_too);
  };
  add(GPUNN_OP_BATCH_NORM, batch_norm_of, [](auto x) { return run_norm<decltype(x)>; });
  add(GPUNN_OP_BATCH_NORM_BACKWARD, batch_norm_backward_of, [](auto x) { return run_norm_backward<decltype(x)>; });
  add(GPUNN_OP_BATCH_NORM_INFERENCE, batch_norm_inference_of, [](auto x) { return run_norm_inference<decltype(x)>; });
}

}  // namespace gpunn::cpu
