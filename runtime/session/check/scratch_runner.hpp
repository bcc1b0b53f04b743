#pragma once

#include <map>
#include <vector>

#include "execution/backend.hpp"
#include "graph/graph.hpp"
#include "ops/reference.hpp"

namespace gpunn::training {

// Runs single ops on a backend on values of the caller's, in memory of their own.
class ScratchRunner {
 public:
  explicit ScratchRunner(execution::Backend& backend) : backend_(backend) {}

  // `key` stands for the signature: kernels are kept by it. An input without values is read where it lies,
  // at resident[i]. Only ops that write no input.
  std::vector<ops::ReferenceTensor> run(std::size_t key, const graph::OpSignature& signature,
                                        const std::vector<ops::ReferenceTensor>& inputs,
                                        const std::vector<void*>& resident);

 private:
  struct Ready {
    execution::Kernel kernel;
    uint64_t workspace_bytes = 0;
  };
  Ready& kernel(std::size_t key, const graph::OpSignature& signature);
  std::byte* memory(uint64_t bytes);

  execution::Backend& backend_;
  std::map<std::size_t, Ready> kernels_;
  execution::Buffer buffer_;
};

}  // namespace gpunn::training
