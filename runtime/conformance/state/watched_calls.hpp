#pragma once

#include <cstdint>
#include <string>

#include "plugins/plugin.hpp"

namespace gpunn::conformance {

// Counts the host calls of a plugin's code while it is armed: memory, and the CUDA runtime's calls that allocate or
// wait. It sees imports from other libraries, but neither statically linked code nor calls inside libraries. It sees
// nothing on processors other than x86-64 and 64-bit Arm.
class WatchedCalls {
 public:
  explicit WatchedCalls(const plugins::Plugin& plugin);

  // Start counting from zero, and stop.
  void arm();
  void disarm();
  // "3 calls of malloc, 1 of cudaMalloc"; empty: none.
  std::string found() const;
};

}  // namespace gpunn::conformance
