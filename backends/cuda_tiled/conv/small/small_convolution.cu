#include <cuda_runtime.h>

#include "conv/small/small_convolution.hpp"
#include "conv/small/small_convolution_kernel.cuh"
#include "launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::small {
namespace {

using Pass = ConvolutionPass;

template <Pass kPass, Source kSource, int kTile>
void launch(const Plan& plan, const Arguments& arguments, cudaStream_t stream) {
  constexpr Tile kShape = kTiles[kTile];
  constexpr auto kKernel = small_convolution_kernel<Traits<kPass, kSource, kShape>>;
  constexpr int kShared = shared_bytes(kPass, kShape);
  allow_shared_memory(kKernel, kShared);
  const cuda::Launch shape{dim3(static_cast<unsigned>(plan.row_tiles * plan.column_tiles * plan.splits)),
                           dim3(threads_of(kShape)), kShared};
  launch_with(kKernel, shape, {.cluster = dim3(static_cast<unsigned>(plan.splits))}, stream, plan, arguments);
}

template <Pass kPass, int kTile>
void run_pass(const Plan& plan, const Arguments& arguments, cudaStream_t stream) {
  switch (plan.source) {
    case Source::kVectors:
      return launch<kPass, Source::kVectors, kTile>(plan, arguments, stream);
    case Source::kPixels:
      return launch<kPass, Source::kPixels, kTile>(plan, arguments, stream);
    case Source::kTaps:
      return launch<kPass, Source::kTaps, kTile>(plan, arguments, stream);
  }
}

template <int kTile>
void run_tile(const Plan& plan, const Arguments& arguments, cudaStream_t stream) {
  switch (plan.pass) {
    case Pass::forward:
      return run_pass<Pass::forward, kTile>(plan, arguments, stream);
    case Pass::backward_data:
      return run_pass<Pass::backward_data, kTile>(plan, arguments, stream);
    case Pass::backward_filter:
      return run_pass<Pass::backward_filter, kTile>(plan, arguments, stream);
  }
}

}  // namespace

void run(const Plan& plan, int tile, const Operands& operands, cudaStream_t stream) {
  const Arguments arguments{operands.first, operands.second, operands.bias, operands.out, operands.relu};
  switch (tile) {
    case 0:
      return run_tile<0>(plan, arguments, stream);
    case 1:
      return run_tile<1>(plan, arguments, stream);
    case 2:
      return run_tile<2>(plan, arguments, stream);
    default:
      return run_tile<3>(plan, arguments, stream);
  }
}

}  // namespace gpunn::cuda_tiled::small
