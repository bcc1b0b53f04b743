// Plans the convolutions of a fused training step: their tiles, and the pitches of their rows and planes.
#pragma once

#include <cstdint>

#include "subgraphs/step/plan.hpp"

namespace gpunn::cuda_tiled {

// The kernel for which a convolution is laid out.
struct ConvBudget {
  int sums = 0;         // floats of a pass
  int threads = 0;      // of the forward pass
  bool rounds = false;  // whether other blocks have work where this one has none (rounds.cuh)
};

// Plans all but the positions in shared memory.
ConvPlan plan_conv(const ConvShape& shape, bool backward_data, const ConvBudget& budget);

// Floats of the sums of the gradient towards x, and of the filters as row_pass() reads them.
int64_t gradient_sums(const ConvPlan& conv, bool rounds);
int64_t packed_filters(const ConvPlan& conv);

}  // namespace gpunn::cuda_tiled
