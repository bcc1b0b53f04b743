// How a convolution of a small network's step is tiled, and how far apart its rows and planes lie.
#pragma once

#include <cstdint>

#include "step_plan.hpp"

namespace gpunn::cuda_tiled {

constexpr int up(int n, int step) { return (n + step - 1) / step * step; }

// All but places in shared memory; sums of a pass in at most `budget` floats. `threads`: of the forward pass.
ConvPlan plan_conv(const ConvShape& shape, bool backward_data, int budget, int threads);

// Floats of the sums of the gradient towards x, and of the filters as row_pass() reads them.
int64_t gradient_sums(const ConvPlan& conv);
int64_t packed_filters(const ConvPlan& conv);

}  // namespace gpunn::cuda_tiled
