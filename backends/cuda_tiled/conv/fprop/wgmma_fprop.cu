#include <algorithm>

#include "conv/fprop/wgmma_fprop_kernel.cuh"
#include "conv/wgmma/wgmma_convolution.hpp"
#include "dependent_launch.cuh"
#include "epilogue.cuh"
#include "launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::tensor {
namespace {

constexpr int kSharedLimit = 227 * 1024;

int64_t tiles_of(const FpropPlan& plan, const FpropTile& tile) {
  int64_t most = 0;
  for (int i = 0; i < plan.phases; ++i) {
    const FpropPhase& phase = plan.phase[static_cast<std::size_t>(i)];
    most = std::max(most, cuda::divide_up(int64_t{plan.batch} * phase.rows * phase.columns, tile.pixels));
  }
  return most * cuda::divide_up(plan.outputs, tile.filters);
}

// y = the sum of the splits' parts, in their order, with bias and ReLU.
__global__ void add_fprop_parts_kernel(const float* __restrict__ parts, const float* __restrict__ bias,
                                       float* __restrict__ y, int64_t size, int splits, int channels, int plane,
                                       int relu) {
#ifdef GPUNN_CONV_TENSOR_CORES
  wait_for_kernel_before();
#endif
  const int64_t index = cuda::thread_index();
  if (index >= size) return;
  float sum = parts[index];
#pragma unroll 8
  for (int split = 1; split < splits; ++split) sum += parts[split * size + index];
  y[index] = finish_at({bias, relu != 0}, sum, index / plane % channels);
}

template <int kTile, int kSteps>
void launch_fprop(const FpropPlan& plan, const FpropOperands& operands, float* workspace, cudaStream_t stream) {
  constexpr FpropTile kShape = kFpropTiles[kTile];
  constexpr int kBlocks = blocks_of(kShape);
  constexpr auto kKernel = fprop_kernel<kTile, kSteps>;
  allow_shared_memory(kKernel, kSharedLimit);

  int64_t packed = 0;
  for (int i = 0; i < plan.phases; ++i) {
    const int64_t chunks = plan.phase[static_cast<std::size_t>(i)].chunks;
    packed = std::max(packed, cuda::divide_up(plan.outputs, kShape.filters) * chunks * kSteps * kShape.filters * 8);
  }
  float* parts = workspace + plan.packed;
  if (plan.gaps != 0) {
    const std::size_t size = static_cast<std::size_t>(plan.output_size()) * static_cast<std::size_t>(plan.splits);
    cuda::check(cudaMemsetAsync(plan.splits == 1 ? operands.y : parts, 0, size * sizeof(float), stream),
                "zeroing a data gradient");
  }
  cuda::launch(pack_filters_kernel<kShape.filters, kSteps>,
               {dim3(cuda::grid_size(packed, 256), static_cast<unsigned>(plan.phases)), dim3(256)}, stream, plan,
               operands.w, workspace);
  const FpropArguments arguments{.x = operands.x,
                                 .packed = workspace,
                                 .bias = operands.bias,
                                 .y = plan.splits == 1 ? operands.y : parts,
                                 .relu = operands.relu};
  launch_with(kKernel,
              {dim3(static_cast<unsigned>(tiles_of(plan, kShape) * plan.phases), static_cast<unsigned>(plan.splits)),
               dim3(fprop_threads(kBlocks)), static_cast<unsigned>(shared_bytes(plan, kShape))},
              {.early = true}, stream, plan, arguments);
  if (plan.splits > 1) {
    launch_with(add_fprop_parts_kernel, cuda::thread_each(plan.output_size()), {.early = true}, stream, parts,
                operands.bias, operands.y, plan.output_size(), plan.splits, plan.outputs,
                plan.output_rows * plan.output_columns, operands.relu ? 1 : 0);
  }
}

using LaunchFprop = void (*)(const FpropPlan&, const FpropOperands&, float*, cudaStream_t);

// By tile; of 4 steps a stage and of 9.
constexpr LaunchFprop kLaunches[][2] = {{launch_fprop<0, 4>, launch_fprop<0, 9>},
                                        {launch_fprop<1, 4>, launch_fprop<1, 9>},
                                        {launch_fprop<2, 4>, launch_fprop<2, 9>},
                                        {launch_fprop<3, 4>, launch_fprop<3, 9>}};

}  // namespace

std::optional<FpropPlan> fprop_plan(const backends::ConvolutionShape& shape, Direction direction, int tile,
                                    int multiprocessors) {
  const FpropTile& size = kFpropTiles[static_cast<std::size_t>(tile)];
  const int limit = kSharedLimit / blocks_of(size);
  std::optional<FpropPlan> plan =
      direction == Direction::kFprop ? plan_fprop(shape, size, limit) : plan_dgrad(shape, size, limit);
  if (!plan || (plan->steps != 4 && plan->steps != 9)) return std::nullopt;
  int chunks = 0;
  for (int i = 0; i < plan->phases; ++i) chunks = std::max(chunks, plan->phase[static_cast<std::size_t>(i)].chunks);
  const int64_t blocks = tiles_of(*plan, size) * plan->phases;
  const int64_t wanted = int64_t{multiprocessors} * blocks_of(size) / blocks;
  plan->splits = static_cast<int>(std::clamp<int64_t>(wanted, 1, std::clamp(chunks / 2, 1, 16)));
  return plan;
}

void run_fprop(const FpropPlan& plan, int tile, const FpropOperands& operands, float* workspace, cudaStream_t stream) {
  kLaunches[tile][plan.steps == 4 ? 0 : 1](plan, operands, workspace, stream);
}

}  // namespace gpunn::cuda_tiled::tensor
