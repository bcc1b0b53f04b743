// A thread block keeps its tile of the result in registers. The factors lie in shared memory, in a ring of three stages
// that asynchronous copies fill two stages ahead. So a stage needs one barrier, and no register waits for memory.
#include "conv/tile_product.cuh"
#include "conv/winograd/batched_product.hpp"
#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::conv {
namespace {

constexpr int kProductDepth = 16;
constexpr int kProductStages = 3;

template <int rows, int columns>
__global__ __launch_bounds__(TileShape<rows, columns>::kThreads, TileShape<rows, columns>::kResident) void  //
    multiply_batch(const float* a, const float* b, float* d, BatchedProduct product) {
  using Shape = TileShape<rows, columns>;
  __shared__ __align__(16) float left[kProductStages][kProductDepth][rows];
  __shared__ __align__(16) float right[kProductStages][kProductDepth][columns];
  const int batch = static_cast<int>(blockIdx.z) % product.batch;
  const int share = static_cast<int>(blockIdx.z) / product.batch;
  const int first_row = static_cast<int>(blockIdx.x) * rows;
  const int first_column = static_cast<int>(blockIdx.y) * columns;
  const int first_k = share * product.tile.depth_of_share;
  const int last_k = min(first_k + product.tile.depth_of_share, product.k);
  const int steps = cuda::divide_up(last_k - first_k, kProductDepth);
  LineCopies<rows, kProductDepth, Shape::kThreads> a_lines(a + batch * product.a_matrix, product.a_line, first_k,
                                                           last_k, first_row);
  LineCopies<columns, kProductDepth, Shape::kThreads> b_lines(b + batch * product.b_matrix, product.b_line, first_k,
                                                              last_k, first_column);

  const auto copy = [&](int step) {
    if (step < steps) {
      a_lines.copy(left[step % kProductStages]);
      b_lines.copy(right[step % kProductStages]);
    }
    __pipeline_commit();
  };
  for (int step = 0; step < kProductStages - 1; ++step) copy(step);

  const TilePlace<Shape, rows> place;
  typename Shape::Sums sums = {};
  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(kProductStages - 2);
    __syncthreads();
    copy(step + kProductStages - 1);
    multiply_tile<Shape, kProductDepth, rows, columns>(&left[step % kProductStages][0][0],
                                                       &right[step % kProductStages][0][0], place, sums);
  }

  d += (static_cast<int64_t>(share) * product.batch + batch) * product.d_matrix;
#pragma unroll
  for (int i = 0; i < Shape::kThreadRows; ++i) {
    const int row = first_row + place.row(i);
    if (row >= product.m) continue;
#pragma unroll
    for (int j = 0; j < Shape::kThreadColumns; j += 4) {
      const int column = first_column + place.column(j);
      if (column >= product.d_line) continue;
      *reinterpret_cast<float4*>(d + static_cast<int64_t>(row) * product.d_line + column) =
          make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
    }
  }
}

template <int rows, int columns>
void launch_batch(const dim3& grid, cudaStream_t stream, const float* a, const float* b, float* d,
                  const BatchedProduct& product) {
  cuda::launch(multiply_batch<rows, columns>, {grid, dim3(TileShape<rows, columns>::kThreads)}, stream, a, b, d,
               product);
}

}  // namespace

TileChoice batched_product_tile(int batch, int m, int n, int k, int multiprocessors, int most_shares) {
  return choose_tile({m, n, k, batch}, multiprocessors, kProductDepth, most_shares);
}

void batched_product(const BatchedProduct& product, const float* a, const float* b, float* d, cudaStream_t stream) {
  const TileChoice& tile = product.tile;
  const dim3 grid(cuda::grid_size(product.m, tile.rows), cuda::grid_size(product.n, tile.columns),
                  static_cast<unsigned>(product.batch * tile.shares));
  const auto multiply = tile.rows == 128      ? tile.columns == 128 ? launch_batch<128, 128> : launch_batch<128, 64>
                             : tile.columns == 128 ? launch_batch<64, 128>
                                              : launch_batch<64, 64>;
  multiply(grid, stream, a, b, d, product);
}

}  // namespace gpunn::cuda_tiled::conv
