#pragma once

#include <vector>

#include "execution/backend.hpp"

namespace gpunn::execution {

// Work that keeps a device busy while the host puts something behind it: a matrix product, small enough to leave caches
// alone, or a copy where the backend has none.
class DeviceHold {
 public:
  explicit DeviceHold(Backend& backend);
  // For about so long, and at least a fifth of a millisecond.
  void enqueue(double seconds);

 private:
  void enqueue_one();
  Backend& backend_;
  std::vector<Buffer> buffers_;
  std::vector<gpunn_tensor> tensors_;
  Kernel kernel_;
  double seconds_ = 0;  // of one
};

}  // namespace gpunn::execution
