#include "cuda_common/check.hpp"
#include "launch.hpp"
#include "shared_memory.hpp"
#include "step_kernels.hpp"
#include "step_launch.cuh"

namespace gpunn::cuda_tiled {

using cuda::check;

int step_shared_limit() {
  int device = 0;
  int major = 0;
  int optin = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for the architecture");
  check(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "asking for shared memory");
  if (major < 9) return 0;
  return optin - kStepStaticBytes;
}

void launch_step(const StepPlan& plan, const GeneralTensors& tensors, cudaStream_t stream) {
  if (plan.general != 0) return launch_general_step(plan, tensors, stream);
  with_step_code<false>(plan, [&](auto code) { launch_pass<decltype(code)>(plan, tensors, stream); });
  launch_update<false>(plan, tensors, stream);
}

bool step_is_resident(const StepPlan& plan) { return plan.norm_layers == 0 || general_step_is_resident(plan); }

}  // namespace gpunn::cuda_tiled
