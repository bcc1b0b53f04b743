#pragma once

#include <cstdint>
#include <string>

#include "execution/backend.hpp"

namespace gpunn::execution {

// How fast a device is at its best, as far as its backend shows: what other rates are compared with (the roofline).
struct Ceilings {
  double bytes_per_second = 0;     // read and written by a copy within the device
  uint64_t copied_bytes = 0;       // of one copy
  double flops_per_second = 0;     // of a square matrix product in the backend's precision; 0: none is served
  int64_t matmul_size = 0;         // its side
  std::string copy_by, matmul_by;  // who was measured: "copy of 'cpu'", "MATMUL of 'cpu'"
  bool asynchronous = false;       // work goes on when the call that enqueues it has returned

  // The time that the slower of moving and computing takes at these rates; 0 where nothing is known.
  double seconds_at_best(double flops, double bytes) const;
  // Whether that is computing.
  bool bound_by_flops(double flops, double bytes) const;
};

// Takes about a second, and allocates memory for that time.
Ceilings measure_ceilings(Backend& backend);

}  // namespace gpunn::execution
