// One of the ways to compute an op at one shape: a library's algorithm, or a kernel of our own.
#pragma once

#include <gpunn/kernel.hpp>

#include <memory>
#include <string>

#include <cuda_runtime_api.h>

namespace gpunn::cuda {

class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // Tells it from the others of its shape, in printable ASCII without tabs: what the tuning cache keeps, and what it
  // is made from again.
  virtual std::string name() const = 0;
  virtual uint64_t workspace_bytes() const = 0;
  virtual void run(const plugin::OpArgs& args, cudaStream_t stream) = 0;
};

using AlgorithmPtr = std::unique_ptr<Algorithm>;

}  // namespace gpunn::cuda
