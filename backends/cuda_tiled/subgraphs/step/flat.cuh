// Kernel 3 of a step: bounds the gradients and runs the optimizer once the norm of all gradients is known.
#pragma once

#include "dependent_launch.cuh"
#include "subgraphs/step/update.cuh"

namespace gpunn::cuda_tiled {

static __global__ void __launch_bounds__(kUpdateThreads) step_flat(const __grid_constant__ GeneralTensors tensors) {
  __shared__ double sums[kUpdateWarps];
  __shared__ __align__(16) char plan_memory[plan_bytes(true)];
  const StepPlan& plan = *reinterpret_cast<const StepPlan*>(plan_memory);
  let_next_kernel_start();
  copy_plan<true>(tensors.plan, reinterpret_cast<float4*>(plan_memory), kUpdateThreads);
  const int thread = static_cast<int>(threadIdx.x);
  const int at = static_cast<int>(blockIdx.x) * kUpdateThreads + thread;
  __syncthreads();
  // The kernels before leave them as they are.
  const FlatElement element = load_element(plan, tensors, at < plan.flat_size ? at : -1);
  wait_for_kernel_before();
  double sum = 0.0;
  for (int i = thread; i < plan.update_blocks; i += kUpdateThreads) {
    sum += static_cast<double>(__ldcg(tensors.workspace + plan.squares + i));
  }
  const float g = at < plan.flat_size ? __ldcg(tensors.gradients + at) : 0.0F;
  const auto* head = reinterpret_cast<const StepHead*>(tensors.workspace + plan.head);
  const float4 rates = __ldcg(reinterpret_cast<const float4*>(head));
  sum = sum_of_block(sum, sums);
  const auto norm = static_cast<float>(sqrt(sum));
  if (at == 0) {
    if (tensors.norm != nullptr) *tensors.norm = norm;
    if (plan.norm_history > 0) {
      const int64_t remainder = __ldcg(reinterpret_cast<const long long*>(&head->step)) % plan.norm_history;
      tensors.norm_history[remainder < 0 ? remainder + plan.norm_history : remainder] = norm;
    }
  }
  if (at >= plan.flat_size) return;
  float scale = 1.0F;
  for (int j = plan.before_norm; j < plan.flat_ops; ++j) {
    const FlatOp& op = plan.flat_op[j];
    if (op.kind != FlatKind::clip_norm || !isfinite(norm)) continue;
    scale = op.a / (norm + op.c);
    if (op.option == 0) scale = fminf(scale, 1.0F);
  }
  run_flat(plan, tensors, {.rate = rates.x, .correction1 = rates.y, .correction2 = rates.z, .count = 0},
           plan.before_norm, plan.flat_ops, at, element, g, scale);
}

}  // namespace gpunn::cuda_tiled
