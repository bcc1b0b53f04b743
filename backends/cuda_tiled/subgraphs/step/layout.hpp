// Lays out buffers in memory, one behind the other.
#pragma once

#include <algorithm>
#include <cstdint>

#include "subgraphs/step/plan.hpp"

namespace gpunn::cuda_tiled {

constexpr int up(int n, int step) { return (n + step - 1) / step * step; }

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

// Lays out the gradients of the convolutions' results, which are zeros at first.
void lay_out_gradients(StepPlan& plan, Layout& backward);

// Lays out a plan's buffers: in shared memory where a block has one image, and in the workspace.
void lay_out_shared(StepPlan& plan);
void lay_out_workspace(StepPlan& plan);

}  // namespace gpunn::cuda_tiled
