// MSE_LOSS of long rows: features and images, of which a batch has few. A row is split into as many parts as fill the
// GPU, and a second kernel adds them in their order: equal inputs give equal bits.
#include <algorithm>
#include <cstdint>

#include "architecture.hpp"
#include "common/loss.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/alignment.hpp"
#include "cuda_common/divide_up.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "pack.cuh"
#include "warp.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;
using backends::LossRows;

constexpr int kBlock = 256;
constexpr int64_t kBlocksPerMultiprocessor = 4;
constexpr int64_t kLeastOfPart = 4 * kBlock;  // elements
constexpr int64_t kLongRow = 4 * kLeastOfPart;

struct MeanSquare {
  LossRows shape;
  int64_t parts = 1;  // of a row
  int64_t part = 0;   // elements of each, a multiple of kBlock; the last has fewer
  uint64_t workspace_bytes = 0;
};

MeanSquare plan_mean_square(const OpDesc& desc) {
  MeanSquare plan{.shape = backends::loss_of(desc)};
  const int64_t rows = plan.shape.rows, columns = plan.shape.columns;
  require(rows > 0 && columns >= kLongRow, "rows are short: the base reads them as well");
  require(rows <= 65535, "is for at most 65535 rows");
  const int64_t wanted = divide_up(int64_t{multiprocessors()} * kBlocksPerMultiprocessor, rows);
  const int64_t parts = std::clamp<int64_t>(wanted, 1, columns / kLeastOfPart);
  plan.part = divide_up(divide_up(columns, parts), kLeastOfPart) * kLeastOfPart;
  plan.parts = divide_up(columns, plan.part);
  plan.workspace_bytes = static_cast<uint64_t>(rows * plan.parts) * sizeof(float);
  return plan;
}

// The sum over the block, in its first thread.
__device__ float block_total(float mine) {
  __shared__ float of_warp[kBlock / kWarp];
#pragma unroll
  for (int reach = kWarp / 2; reach > 0; reach /= 2) mine += __shfl_xor_sync(kEveryLane, mine, reach);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = mine;
  __syncthreads();
  float total = 0.0F;
  for (const float warp : of_warp) total += warp;
  return total;
}

// A block a part of a row: parts are [rows, parts].
template <int width>
__global__ void __launch_bounds__(kBlock)
    add_squares(const float* x, const float* target, float* parts, MeanSquare plan) {
  using Packs = Pack<float, width>;
  const int64_t begin = int64_t{blockIdx.x} * plan.part;
  const int64_t end = min(begin + plan.part, plan.shape.columns);
  const int64_t row = int64_t{blockIdx.y} * plan.shape.columns;
  float sum[width] = {};
#pragma unroll 4
  for (int64_t i = begin + int64_t{threadIdx.x} * width; i < end; i += int64_t{kBlock} * width) {
    const Packs a = *reinterpret_cast<const Packs*>(x + row + i);
    const Packs b = *reinterpret_cast<const Packs*>(target + row + i);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float apart = a.values[k] - b.values[k];
      sum[k] += apart * apart;
    }
  }
#pragma unroll
  for (int k = 1; k < width; ++k) sum[0] += sum[k];
  const float total = block_total(sum[0]);
  if (threadIdx.x == 0) parts[int64_t{blockIdx.y} * plan.parts + blockIdx.x] = total;
}

// A block a row.
__global__ void __launch_bounds__(kBlock) add_parts(const float* parts, float* loss, MeanSquare plan) {
  const float* const of_row = parts + int64_t{blockIdx.x} * plan.parts;
  float sum = 0.0F;
  for (int64_t i = threadIdx.x; i < plan.parts; i += kBlock) sum += of_row[i];
  const float total = block_total(sum);
  if (threadIdx.x == 0) loss[blockIdx.x] = total / static_cast<float>(plan.shape.columns);
}

void run_mean_square(const MeanSquare& plan, cudaStream_t stream, const OpArgs& args) {
  const auto *x = args.in<float>(0), *target = args.in<float>(1);
  auto* const parts = args.workspace<float>();
  const bool packs = plan.shape.columns % 4 == 0 && are_aligned({x, target}, sizeof(float4));
  const Launch blocks{dim3(static_cast<unsigned>(plan.parts), static_cast<unsigned>(plan.shape.rows)), dim3(kBlock)};
  launch(packs ? add_squares<4> : add_squares<1>, blocks, stream, x, target, parts, plan);
  launch(add_parts, block_each(plan.shape.rows, kBlock), stream, parts, args.out<float>(0), plan);
}

}  // namespace

void add_mean_square_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_MSE_LOSS, "mse_loss", plan_mean_square, run_mean_square);
}

}  // namespace gpunn::cuda_tiled
