#include "cuda_common/check.hpp"
#include "shared_memory.hpp"
#include "step_kernels.hpp"
#include "step_pass.cuh"
#include "step_update.cuh"

namespace gpunn::cuda_tiled {
namespace {

using cuda::check;

template <class Kernel, class... Arguments>
void launch_overlapped(Kernel kernel, dim3 grid, dim3 block, unsigned shared_bytes, unsigned cluster,
                       cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = cluster > 1 ? 2 : 1;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), "launching a step");
}

// A block of the second kernel should find room beside one of the first.
template <class Kernel>
void prefer_shared_memory(Kernel kernel) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
        "asking for shared memory");
}

template <class B>
void launch_pass(const StepPlan& plan, const StepTensors& tensors, cudaStream_t stream) {
  allow_shared_memory(step_pass<B>, plan.shared_bytes);
  prefer_shared_memory(step_pass<B>);
  prefer_shared_memory(step_update);
  const int blocks = (plan.batch + B::kImages - 1) / B::kImages * B::kImages;
  launch_overlapped(step_pass<B>, dim3(static_cast<unsigned>(blocks)), dim3(B::kThreads),
                    static_cast<unsigned>(plan.shared_bytes), B::kImages, stream, tensors);
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
  check(cudaFuncGetAttributes(&attributes, step_pass<OctetBlock>), "asking for the kernel of a step");
  return optin - static_cast<int>(attributes.sharedSizeBytes);
}

void launch_step(const StepPlan& plan, const StepTensors& tensors, cudaStream_t stream) {
  if (plan.images == PairBlock::kImages) {
    launch_pass<PairBlock>(plan, tensors, stream);
  } else {
    launch_pass<OctetBlock>(plan, tensors, stream);
  }
  launch_overlapped(step_update,
                    dim3(static_cast<unsigned>(plan.dense_blocks + plan.partial_blocks + plan.bias_blocks + 2)),
                    dim3(kUpdateThreads), 0, 1, stream, tensors);
}

}  // namespace gpunn::cuda_tiled
