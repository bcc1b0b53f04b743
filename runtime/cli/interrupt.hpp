#pragma once

#include <atomic>

namespace gpunn::cli {

// While one lives, the first SIGINT (Ctrl-C) or SIGTERM raises a flag and says so on stderr; the second ends the
// process at once with exit code 130.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>* flag() const;
};

}  // namespace gpunn::cli
