// How a test steers the sample overlay, and what it tells back: extension("test.cuda_control") is a CudaControl.
#pragma once

#include <cstdint>

struct CudaControl {
  bool fault = false;  // the next RELU writes to an address that is nowhere
  int32_t relus = 0;   // put on a stream by this overlay
  // The device reads and writes these while a kernel runs; null before a device is open.
  volatile int32_t* open = nullptr;     // 0: TABLE_LOAD waits until it is 1
  volatile int32_t* gave_up = nullptr;  // 1: it waited for ten seconds
};
