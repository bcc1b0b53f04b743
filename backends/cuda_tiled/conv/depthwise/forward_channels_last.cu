// The forward pass of depthwise convolutions of channels-last images.
#include "conv/depthwise/channels_last.cuh"
#include "conv/depthwise/dispatch.cuh"
#include "conv/depthwise/sliding.hpp"
#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::depthwise {

void forward_of_channels_last(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream) {
  const ChannelsLastPlan plan = channels_last_plan(problem);
  const cuda::Launch blocks = cuda::thread_each(plan.tasks, kChannelsLastThreads);
  with_filter(problem, [&](auto type, auto taps, auto stride) {
    using T = decltype(type);
    cuda::launch(forward_channels_last<T, taps(), stride()>, blocks, stream, static_cast<const T*>(at.x),
                 static_cast<const T*>(at.w), at.epilogue, static_cast<T*>(at.out), sizes_of(problem.shape), plan);
  });
}

}  // namespace gpunn::cuda_tiled::depthwise
