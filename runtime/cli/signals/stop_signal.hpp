#pragma once

#include <signal.h>

namespace gpunn::cli {

// Receives SIGINT (Ctrl-C), SIGTERM and SIGHUP for a program that serves until it is stopped. Create it before any
// thread, so that threads do not receive the signals. A signal that was ignored when the program started, as by nohup,
// stays ignored.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Returns at the first signal. After that, a second one ends the process at once with exit code 130.
  void wait();
  // A descriptor that becomes readable at the first signal, for callers that wait for other things too. This object
  // owns it.
  int descriptor();

 private:
  sigset_t signals_{}, former_{};
  int descriptor_ = -1;
};

}  // namespace gpunn::cli
