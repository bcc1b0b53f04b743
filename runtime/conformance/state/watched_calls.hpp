#pragma once

#include <cstdint>
#include <string>

#include "plugins/plugin.hpp"

namespace gpunn::conformance {

// Counts what a plugin's code asks of the host while it is armed: memory, and the CUDA runtime's calls that allocate or
// wait. It sees what the plugin imports from other libraries; what is linked into it statically it does not, nor what
// libraries do on their own. Nothing is seen on processors other than x86-64 and 64-bit Arm.
class WatchedCalls {
 public:
  explicit WatchedCalls(const plugins::Plugin& plugin);

  // Counting begins anew, and ends.
  void arm();
  void disarm();
  // "3 calls of malloc, 1 of cudaMalloc"; empty: none.
  std::string found() const;
};

}  // namespace gpunn::conformance
