#pragma once

#include <signal.h>

namespace gpunn::cli {

// Takes SIGINT (Ctrl-C), SIGTERM and SIGHUP for a program that serves until it is told to stop. Made before threads
// are, it keeps the signals from them. A signal that the program was started to ignore, as by nohup, stays ignored.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Returns at the first signal. From then on a second one ends the process at once, with exit code 130.
  void wait();
  // A descriptor that can be read from the first signal on, for who waits for something else too. It is this object's.
  int descriptor();

 private:
  sigset_t signals_{}, former_{};
  int descriptor_ = -1;
};

}  // namespace gpunn::cli
