// The weight gradient of depthwise convolutions of packed images.
#include "conv/depthwise/dispatch.cuh"
#include "conv/depthwise/join.cuh"
#include "conv/depthwise/packed.cuh"
#include "conv/depthwise/sliding.hpp"
#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::depthwise {

void weight_gradient_of_packed(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream) {
  const PackedPlan plan = packed_plan_at(problem, at.x);
  const cuda::Launch blocks{dim3(static_cast<unsigned>(plan.blocks)), dim3(static_cast<unsigned>(plan.threads)),
                            plan.shared_bytes};
  with_filter(problem, [&](auto type, auto taps, auto stride) {
    using T = decltype(type);
    cuda::launch(weight_gradient_packed<T, taps(), stride()>, blocks, stream, static_cast<const T*>(at.y),
                 static_cast<const T*>(at.x), at.workspace, sizes_of(problem.shape), plan);
    join(at.workspace, static_cast<T*>(at.out), problem.shape.groups * taps() * taps(), plan.splits, stream);
  });
}

}  // namespace gpunn::cuda_tiled::depthwise
