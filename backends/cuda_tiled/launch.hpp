// Launches kernels whose blocks form clusters, or that may start before the previous kernel ends. For .cu files.
#pragma once

#include <utility>

#include <cuda_runtime.h>

#include "cuda_common/check.hpp"
#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled {

struct LaunchAttributes {
  dim3 cluster = {0, 0, 0};  // blocks of a cluster; none are clusters
  bool together = false;     // all blocks run at the same time, and may wait for each other
  bool early = false;  // may begin before the kernel before it has ended, for which it waits (dependent_launch.cuh)
};

// Whether kernels may start early. GPUNN_EARLY_LAUNCH=0 in the environment disables it, for tools that look at one
// kernel at a time.
bool early_launches();

// A launch configuration of the CUDA runtime. It points to its own attributes, so it must not move.
class LaunchConfig {
 public:
  LaunchConfig(const cuda::Launch& shape, const LaunchAttributes& attributes, cudaStream_t stream) {
    config_.gridDim = shape.grid;
    config_.blockDim = shape.block;
    config_.dynamicSmemBytes = shape.shared_bytes;
    config_.stream = stream;
    config_.attrs = attributes_;
    if (attributes.cluster.x > 0) {
      cudaLaunchAttribute& cluster = attributes_[config_.numAttrs++];
      cluster.id = cudaLaunchAttributeClusterDimension;
      cluster.val.clusterDim = {attributes.cluster.x, attributes.cluster.y, attributes.cluster.z};
    }
    if (attributes.together) {
      cudaLaunchAttribute& together = attributes_[config_.numAttrs++];
      together.id = cudaLaunchAttributeCooperative;
      together.val.cooperative = 1;
    }
    if (attributes.early && early_launches()) {
      cudaLaunchAttribute& early = attributes_[config_.numAttrs++];
      early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
    }
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  const cudaLaunchConfig_t& get() const { return config_; }

 private:
  cudaLaunchConfig_t config_{};
  cudaLaunchAttribute attributes_[3]{};
};

template <class... Parameters, class... Arguments>
void launch_with(void (*kernel)(Parameters...), const cuda::Launch& shape, const LaunchAttributes& attributes,
                 cudaStream_t stream, Arguments&&... arguments) {
  const LaunchConfig config(shape, attributes, stream);
  cuda::check(cudaLaunchKernelEx(&config.get(), kernel, Parameters(std::forward<Arguments>(arguments))...),
              "launching a kernel");
}

}  // namespace gpunn::cuda_tiled
