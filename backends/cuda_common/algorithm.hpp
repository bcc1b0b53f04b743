// An algorithm that computes an op at one shape: a library's algorithm or one of the project's kernels.
#pragma once

#include <gpunn/kernel.hpp>

#include <memory>
#include <string>

#include <cuda_runtime_api.h>

namespace gpunn::cuda {

class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // Identifies the algorithm among those of its shape, in printable ASCII without tabs. The tuning cache stores this
  // name, and the algorithm is recreated from it.
  virtual std::string name() const = 0;
  virtual uint64_t workspace_bytes() const = 0;
  virtual void run(const plugin::OpArgs& args, cudaStream_t stream) = 0;
};

using AlgorithmPtr = std::unique_ptr<Algorithm>;

}  // namespace gpunn::cuda
