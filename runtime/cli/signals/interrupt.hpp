#pragma once

#include <atomic>

namespace gpunn::cli {

// Handles Ctrl-C (SIGINT), SIGTERM and SIGHUP (a closed terminal) while it lives. Before begin(), a signal ends the
// process at once with exit code 130, since there is nothing to save. After begin(), the first signal raises a flag and
// prints a line on stderr, and the second ends the process. A signal that was ignored when the program started, as by
// nohup, stays ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // From now on there is something to save, and the training reads the flag. Of several ranks only one prints.
  enum class Speech { aloud, silent };
  static void begin(Speech speech = Speech::aloud);
  static const std::atomic<bool>* flag();
};

}  // namespace gpunn::cli
