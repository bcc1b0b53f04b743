// Lays out buffers in memory, one behind the other.
#pragma once

#include <algorithm>
#include <cstdint>

#include "step_plan.hpp"

namespace gpunn::cuda_tiled {

class Layout {
 public:
  // Takes floats, starting at a multiple of 16 bytes.
  int take(int64_t floats) {
    const int64_t at = used_;
    used_ += (floats + 3) / 4 * 4;
    return static_cast<int>(at);
  }
  void skip_to(int at) { used_ = std::max<int64_t>(used_, at); }
  int64_t used() const { return used_; }

 private:
  int64_t used_ = 0;
};

// Lays out shared memory for the kernels of large batches (step_rounds.cuh), and counts their blocks. Returns false if
// a block doesn't fit.
bool lay_out_rounds(StepPlan& plan, const StepLimits& limits);

// Whether a plan for large batches is faster than `single`, which has a block an image.
bool rounds_pay(const StepPlan& single, const StepLimits& limits);

}  // namespace gpunn::cuda_tiled
