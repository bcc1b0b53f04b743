#pragma once

#include <atomic>

namespace gpunn::cli {

// While one lives, SIGINT (Ctrl-C), SIGTERM or SIGHUP (a terminal that is gone) ends the process at once with exit code
// 130, as long as there is nothing to save. Once begin() was called, the first raises a flag and says so on stderr, and
// the second ends the process. A signal that the program was started to ignore, as by nohup, stays ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // There is something to save from now on, and the training looks at the flag. Of several ranks one says so.
  enum class Speech { aloud, silent };
  static void begin(Speech speech = Speech::aloud);
  static const std::atomic<bool>* flag();
};

}  // namespace gpunn::cli
