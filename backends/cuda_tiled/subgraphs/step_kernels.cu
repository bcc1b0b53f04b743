#include "cuda_common/check.hpp"
#include "launch.hpp"
#include "shared_memory.hpp"
#include "step_kernels.hpp"
#include "step_pass.cuh"
#include "step_update.cuh"

namespace gpunn::cuda_tiled {
namespace {

using cuda::check;

// A block of the second kernel should find room beside one of the first.
template <class Kernel>
void prefer_shared_memory(Kernel kernel) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
        "asking for shared memory");
}

template <class B>
void launch_pass(const StepPlan& plan, const StepTensors& tensors, cudaStream_t stream) {
  allow_shared_memory(step_pass<B>, plan.shared_bytes);
  if constexpr (B::kBlocks == 1) {
    prefer_shared_memory(step_pass<B>);
    prefer_shared_memory(step_update);
  }
  const int blocks = (plan.batch + B::kImages - 1) / B::kImages * B::kImages;
  launch_with(step_pass<B>,
              {dim3(static_cast<unsigned>(blocks)), dim3(B::kThreads), static_cast<unsigned>(plan.shared_bytes)},
              {.cluster = dim3(B::kImages), .early = true}, stream, tensors);
}

}  // namespace

int step_shared_limit() {
  int device = 0;
  int major = 0;
  int optin = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for the architecture");
  check(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "asking for shared memory");
  if (major < 9) return 0;
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, step_pass<StepCode<OctetBlock, kAnyColumns>>),
        "asking for the kernel of a step");
  return optin - static_cast<int>(attributes.sharedSizeBytes);
}

void launch_step(const StepPlan& plan, const StepTensors& tensors, cudaStream_t stream) {
  if (plan.images == OctetBlock::kImages) {
    if (plan.columns == kNoFilters) {
      launch_pass<StepCode<OctetBlock, kNoFilters>>(plan, tensors, stream);
    } else {
      launch_pass<StepCode<OctetBlock, kAnyColumns>>(plan, tensors, stream);
    }
  } else if (plan.columns == 5) {
    launch_pass<StepCode<PairBlock, 5>>(plan, tensors, stream);
  } else if (plan.columns == 3) {
    launch_pass<StepCode<PairBlock, 3>>(plan, tensors, stream);
  } else {
    launch_pass<StepCode<PairBlock, kAnyColumns>>(plan, tensors, stream);
  }
  const int blocks = plan.dense_blocks + plan.partial_blocks + plan.bias_blocks + 2;
  launch_with(step_update, {dim3(static_cast<unsigned>(blocks)), dim3(kUpdateThreads)}, {.early = true}, stream,
              tensors);
}

}  // namespace gpunn::cuda_tiled
