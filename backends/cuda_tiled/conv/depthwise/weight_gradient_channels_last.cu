// The weight gradient of depthwise convolutions of channels-last images.
#include "conv/depthwise/channels_last.cuh"
#include "conv/depthwise/dispatch.cuh"
#include "conv/depthwise/join.cuh"
#include "conv/depthwise/sliding.hpp"
#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::depthwise {

void weight_gradient_of_channels_last(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream) {
  const ChannelsLastPlan plan = channels_last_plan(problem);
  const int64_t width = width_of(problem.shape.rows.taps);
  const cuda::Launch blocks{
      dim3(cuda::grid_size(problem.shape.groups, width * plan.lanes), static_cast<unsigned>(plan.splits)),
      dim3(static_cast<unsigned>(plan.lanes * plan.depth))};
  with_filter(problem, [&](auto type, auto taps, auto stride) {
    using T = decltype(type);
    cuda::launch(weight_gradient_channels_last<T, taps(), stride()>, blocks, stream, static_cast<const T*>(at.y),
                 static_cast<const T*>(at.x), at.workspace, sizes_of(problem.shape), plan);
    join(at.workspace, static_cast<T*>(at.out), problem.shape.groups * taps() * taps(), plan.splits, stream);
  });
}

}  // namespace gpunn::cuda_tiled::depthwise
