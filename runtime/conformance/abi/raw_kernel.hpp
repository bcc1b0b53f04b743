#pragma once

#include <string>

#include "conformance/abi/raw_device.hpp"

namespace gpunn::conformance {

// A kernel of the first plugin in a chain that serves an op, for tensors and streams that execution::Backend does not
// support.
class RawKernel {
 public:
  // The data that the description points to must outlive the kernel. If no plugin serves the op, served() is false and
  // reason() says why.
  RawKernel(const RawChain& chain, const RawDescription& description);
  ~RawKernel();
  RawKernel(const RawKernel&) = delete;
  RawKernel& operator=(const RawKernel&) = delete;

  bool served() const { return device_ != nullptr; }
  const std::string& reason() const { return reason_; }
  std::size_t level() const { return level_; }
  uint64_t workspace_bytes() const { return support_.workspace_bytes; }
  const RawDevice& device() const { return *device_; }

  // Runs on a stream of device(), with the present tensors of `description`.
  void enqueue(gpunn_stream* stream, const RawDescription& description, const RawMemory& workspace) const;

 private:
  const RawDevice* device_ = nullptr;
  std::size_t level_ = 0;
  gpunn_kernel* kernel_ = nullptr;
  gpunn_op_support support_{};
  std::string reason_;
};

}  // namespace gpunn::conformance
