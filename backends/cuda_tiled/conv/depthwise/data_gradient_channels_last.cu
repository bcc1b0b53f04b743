// The data gradient of depthwise convolutions of channels-last images.
#include "conv/depthwise/channels_last.cuh"
#include "conv/depthwise/dispatch.cuh"
#include "conv/depthwise/sliding.hpp"
#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::depthwise {

void data_gradient_of_channels_last(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream) {
  const ChannelsLastPlan plan = channels_last_plan(problem);
  const cuda::Launch blocks = cuda::thread_each(plan.tasks, kChannelsLastThreads);
  with_filter(problem, [&](auto type, auto taps, auto stride) {
    using T = decltype(type);
    const auto run = [&](auto kernel) {
      cuda::launch(kernel, blocks, stream, static_cast<const T*>(at.y), static_cast<const T*>(at.w),
                   static_cast<T*>(at.out), sizes_of(problem.shape), plan);
    };
    if constexpr (stride() == 2) {
      if (shift_of(problem.shape) == 1) return run(data_gradient_channels_last<T, taps(), stride(), 1>);
    }
    run(data_gradient_channels_last<T, taps(), stride(), 0>);
  });
}

}  // namespace gpunn::cuda_tiled::depthwise
