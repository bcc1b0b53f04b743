#pragma once

#include "conformance/abi/raw_stream.hpp"

namespace gpunn::conformance {

// Work that keeps a stream busy: copies within the device, timed once. Work enqueued after it is not done when the host
// returns, unless the device works while the host enqueues; then it is a single copy.
class Delay {
 public:
  explicit Delay(const RawChain& chain);

  // `stream` is one of the plugin at the bottom of the chain.
  void enqueue(const RawStream& stream, double milliseconds) const;
  // Whether enqueueing comes back before the work is done.
  bool asynchronous() const { return asynchronous_; }

 private:
  RawMemory from_, to_;
  double copy_milliseconds_ = 0;
  bool asynchronous_ = false;
};

}  // namespace gpunn::conformance
