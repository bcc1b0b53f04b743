// Launches half_product with one tile. Each half_tile_*.cu compiles this for its tile.
#pragma once

#include "cuda_common/check.hpp"
#include "half/half_kernel.cuh"
#include "half/half_plan.hpp"
#include "launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {

template <int kTile, HalfElement kElement, Major kMajorA, Major kMajorB, HalfEnding kEnding = HalfEnding::kPlain>
void launch_half_product(const HalfPlan& plan, int blocks, cudaStream_t stream) {
  using T = HalfTiling<kHalfTiles[kTile], kElement, kMajorA, kMajorB, kEnding>;
  constexpr auto kKernel = half_product<T>;
  allow_shared_memory(kKernel, T::kSharedBytes);
  launch_with(kKernel, {dim3(static_cast<unsigned>(blocks)), dim3(T::kThreads), T::kSharedBytes},
              {.cluster = T::kCluster > 1 ? dim3(T::kCluster) : dim3(0, 0, 0), .early = true}, stream, plan.product);
}

template <int kTile, HalfElement kElement>
void launch_half_majors(const HalfPlan& plan, int blocks, cudaStream_t stream) {
  constexpr Major kK = Major::kK, kMN = Major::kMN;
  if constexpr (endings_of(kTile) != HalfEndings::kPlain) {
    if (plan.product.statistics.slabs != nullptr) {  // these are of forward convolutions, as is a residual
      return launch_half_product<kTile, kElement, kK, kK, HalfEnding::kStatistics>(plan, blocks, stream);
    }
  }
  if constexpr (endings_of(kTile) == HalfEndings::kAll) {
    if (plan.product.gradient.slabs != nullptr) {
      return launch_half_product<kTile, kElement, kK, kMN, HalfEnding::kGradient>(plan, blocks, stream);
    }
  }
  if (plan.product.residual != nullptr) {
    return launch_half_product<kTile, kElement, kK, kK, HalfEnding::kResidual>(plan, blocks, stream);
  }
  const auto launch = plan.major_a == kK ? (plan.major_b == kK ? launch_half_product<kTile, kElement, kK, kK>
                                                               : launch_half_product<kTile, kElement, kK, kMN>)
                                         : (plan.major_b == kK ? launch_half_product<kTile, kElement, kMN, kK>
                                                               : launch_half_product<kTile, kElement, kMN, kMN>);
  launch(plan, blocks, stream);
}

template <int kTile>
void launch_half_tile(const HalfPlan& plan, int blocks, cudaStream_t stream) {
  (plan.element == HalfElement::kBf16 ? launch_half_majors<kTile, HalfElement::kBf16>
                                      : launch_half_majors<kTile, HalfElement::kF16>)(plan, blocks, stream);
}

}  // namespace gpunn::cuda_tiled
