#include "conv/wgmma/wgmma_convolution.hpp"
#include "conv/wgrad/wgmma_wgrad_kernel.cuh"
#include "dependent_launch.cuh"
#include "launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled::tensor {
namespace {

constexpr int kSharedLimit = 227 * 1024;

constexpr int kAddThreads = 512;

// dw[filter][row] = sum over parts of parts[split][row][filter], in order.
__global__ void __launch_bounds__(kAddThreads)
    add_wgrad_parts_kernel(const float* __restrict__ parts, float* __restrict__ dw, int rows, int filters, int pitch,
                           int splits) {
#ifdef GPUNN_CONV_TENSOR_CORES
  wait_for_kernel_before();
#endif
  __shared__ float tile[32][33];
  const int first_row = static_cast<int>(blockIdx.x) * 32;
  const int first_filter = static_cast<int>(blockIdx.y) * 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t part_size = int64_t{rows} * pitch;
  for (int i = static_cast<int>(threadIdx.x) / 32; i < 32; i += kAddThreads / 32) {
    float sum = 0.0f;
    if (first_row + i < rows) {
      const float* from = parts + int64_t{first_row + i} * pitch + first_filter + lane;
#pragma unroll 16
      for (int split = 0; split < splits; ++split) sum += from[split * part_size];
    }
    tile[i][lane] = sum;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x) / 32; i < 32; i += kAddThreads / 32) {
    if (first_filter + i < filters && first_row + lane < rows) {
      dw[int64_t{first_filter + i} * rows + first_row + lane] = tile[lane][i];
    }
  }
}

template <int kTile, bool kVector>
void launch_wgrad(const WgradPlan& plan, const WgradArguments& arguments, cudaStream_t stream) {
  constexpr WgradTile kShape = kWgradTiles[kTile];
  constexpr auto kKernel = wgrad_kernel<kTile, kVector>;
  allow_shared_memory(kKernel, kSharedLimit);
  cuda::launch(kKernel,
               {dim3(static_cast<unsigned>(plan.row_tiles * plan.filter_tiles), static_cast<unsigned>(plan.splits)),
                dim3((warpgroups_of(kShape) + 1) * 128), static_cast<unsigned>(shared_bytes(plan, kShape))},
               stream, plan, arguments);
}

using LaunchWgrad = void (*)(const WgradPlan&, const WgradArguments&, cudaStream_t);

constexpr LaunchWgrad kLaunches[][2] = {{launch_wgrad<0, false>, launch_wgrad<0, true>},
                                        {launch_wgrad<1, false>, launch_wgrad<1, true>},
                                        {launch_wgrad<2, false>, launch_wgrad<2, true>},
                                        {launch_wgrad<3, false>, launch_wgrad<3, true>}};

}  // namespace

std::optional<WgradPlan> wgrad_plan(const backends::ConvolutionShape& shape, int tile, int multiprocessors) {
  const WgradTile& size = kWgradTiles[static_cast<std::size_t>(tile)];
  const int64_t taps = shape.rows.taps * shape.columns.taps;
  const bool slots_are_taps = size.slots == 9;
  if (slots_are_taps != (taps >= 8 && shape.group_inputs >= 64)) return std::nullopt;
  return plan_wgrad(shape, size, kSharedLimit, multiprocessors);
}

void run_wgrad(const WgradPlan& plan, int tile, const float* dy, const float* x, float* dw, float* workspace,
               cudaStream_t stream) {
  const FpropPlan& geometry = plan.geometry;
  const bool vector = geometry.phase[0].vector != 0 && geometry.output_rows * geometry.output_columns % 4 == 0;
  kLaunches[tile][vector ? 1 : 0](plan, {.dy = dy, .x = x, .parts = workspace}, stream);
  const int rows = plan.geometry.inputs * plan.taps;
  const dim3 grid(cuda::divide_up(rows, 32), cuda::divide_up(plan.geometry.outputs, 32));
  launch_with(add_wgrad_parts_kernel, {grid, dim3(kAddThreads)}, {.early = true}, stream, workspace, dw, rows,
              plan.geometry.outputs, plan.filter_pitch, plan.splits);
}

}  // namespace gpunn::cuda_tiled::tensor
