// How a test steers the sample plugin "delayed": extension("test.delayed") is an DelayedControl.
#pragma once

#include <atomic>
#include <cstdint>

struct DelayedControl {
  // How long a copy to the device, a GATHER_NORMALIZE and a fill wait, in microseconds, before they begin.
  std::atomic<int> copy_delay{0}, gather_delay{0}, fill_delay{0};
  // Waits that are left out, to see whether they are missed: those of streams for events that were recorded on the
  // device's first stream or on another, and those of the host for events.
  std::atomic<bool> forget_first{false}, forget_others{false}, forget_host{false};
  std::atomic<bool> capturable{false};  // whether its kernels say that they can be captured
  std::atomic<int64_t> free_bytes{0};   // as device_info tells it
  // Calls from a second thread while one was in a call, which the host must never make.
  std::atomic<int> overlapping_calls{0};
  std::atomic<int> launches{0};  // of captured graphs

  void reset() {
    copy_delay = gather_delay = fill_delay = 0;
    forget_first = forget_others = forget_host = capturable = false;
    overlapping_calls = launches = 0;
    free_bytes = 0;
  }
};
