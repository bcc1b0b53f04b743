#pragma once

#include <vector>

#include "execution/backend.hpp"

namespace gpunn::execution {

// Work that keeps a device busy while the host enqueues more: a matrix product, small enough to leave caches alone, or
// a copy if the backend has no product.
class DeviceHold {
 public:
  explicit DeviceHold(Backend& backend);
  // Takes about this long, and at least a fifth of a millisecond.
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
