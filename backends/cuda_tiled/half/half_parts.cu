// Runs after half_product: adds the parts of split sums and computes the statistics of their columns.
#include <cstdint>

#include "cuda_common/launch.hpp"
#include "dependent_launch.cuh"
#include "half/half_plan.hpp"
#include "half/half_statistics.cuh"
#include "half/half_store.cuh"
#include "launch.hpp"
#include "moments.cuh"
#include "quads.cuh"
#include "warp.hpp"

namespace gpunn::cuda_tiled {
namespace {

// Four columns of y' and their place in y. `part` is where the first part has their sums, each next one `pitch` behind.
// Leaves in `words` what it stores.
template <bool kBf16>
__device__ __forceinline__ void store_quad(const HalfProduct& product, const ColumnSpan& span, int row,
                                           const float* part, int64_t pitch, uint32_t (&words)[2]) {
  float4 sum = *reinterpret_cast<const float4*>(part);
#pragma unroll 8
  for (int split = 1; split < product.splits; ++split) {
    sum = sum + *reinterpret_cast<const float4*>(part + split * pitch);
  }
  float sums[4] = {sum.x, sum.y, sum.z, sum.w};
  const int64_t place = place_of(product.phase[0].places, row) + span.first;
  if (product.residual != nullptr) {
    const uint16_t* const residual = static_cast<const uint16_t*>(product.residual) + place;
#pragma unroll
    for (int k = 0; k < 4; k += 2) {
      const float2 two = residual_pair<kBf16>(residual + k, span.count - k, product.vectors);
      sums[k] += two.x;
      sums[k + 1] += two.y;
    }
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < span.count) sums[k] = finish_at(product.epilogue, sums[k], span.first + k);
  }
  uint16_t* const to = static_cast<uint16_t*>(product.y) + place;
  words[0] = half_pair<kBf16>(sums[0], sums[1]);
  words[1] = half_pair<kBf16>(sums[2], sums[3]);
  if (product.vectors) {
    *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < span.count) to[k] = static_cast<uint16_t>(words[k / 2] >> (k % 2 * 16));
  }
}

// A thread four columns of a split tile, of so many quads in a row and in a tile.
template <bool kBf16>
__global__ void add_parts_of_half(HalfProduct product, Divider tile_quads, Divider row_quads, int tile_rows,
                                  int64_t count) {
  let_next_kernel_start();
  wait_for_kernel_before();
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const HalfPhase& phase = product.phase[0];
  const Divider::Result tile = tile_quads(static_cast<int>(i));
  const Divider::Result quad = row_quads(tile.rest);
  const int2 at = place_of_tile(phase, phase.whole_tiles + tile.quotient);
  const int row = at.x * tile_rows + quad.quotient;
  const int column = at.y * static_cast<int>(row_quads.by) * 4 + quad.rest * 4;
  if (row >= phase.rows || column >= product.columns) return;
  const ColumnSpan span = span_of(product, column);
  if (span.count <= 0) return;
  const int64_t pitch = int64_t{tile_quads.by} * 4;
  uint32_t words[2];
  store_quad<kBf16>(product, span, row, product.parts + tile.quotient * product.splits * pitch + int64_t{tile.rest} * 4,
                    pitch, words);
}

// The same with statistics: a block has the 64 rows of a slab and 32 columns, of which a thread takes four in two rows.
constexpr int kPieceColumns = 32;
constexpr int kPieceThreads = kSlabRows / 2 * kPieceColumns / 4;

template <bool kBf16>
__global__ void __launch_bounds__(kPieceThreads)
    add_parts_with_statistics(HalfProduct product, int tile_rows, int tile_columns, Divider tile_pieces,
                              Divider row_pieces) {
  constexpr int kLines = kSlabRows / 2;  // of threads
  constexpr int kQuads = kPieceColumns / 4;
  let_next_kernel_start();
  wait_for_kernel_before();
  const HalfPhase& phase = product.phase[0];
  const int counted = counted_rows(product.statistics, phase.rows);
  const Divider::Result tile = tile_pieces(static_cast<int>(blockIdx.x));
  const Divider::Result piece = row_pieces(tile.rest);
  const int2 at = place_of_tile(phase, phase.whole_tiles + tile.quotient);
  const int row_in_tile = piece.quotient * kSlabRows, column_in_tile = piece.rest * kPieceColumns;
  const int first_row = at.x * tile_rows + row_in_tile, first_column = at.y * tile_columns + column_in_tile;
  if (first_row >= phase.rows || first_column >= product.columns) return;

  const int line = static_cast<int>(threadIdx.x) / kQuads, quad = static_cast<int>(threadIdx.x) % kQuads;
  const int64_t pitch = int64_t{tile_rows} * tile_columns;
  const float* const parts = product.parts + tile.quotient * product.splits * pitch;
  const ColumnSpan span = span_of(product, first_column + quad * 4);
  float2 values[2][2] = {};  // of a row
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int of_piece = half * kLines + line;
    if (first_row + of_piece >= phase.rows || span.count <= 0) continue;
    uint32_t words[2];
    store_quad<kBf16>(product, span, first_row + of_piece,
                      parts + int64_t{row_in_tile + of_piece} * tile_columns + column_in_tile + quad * 4, pitch, words);
    values[half][0] = numbers_of<kBf16>(words[0]);
    values[half][1] = numbers_of<kBf16>(words[1]);
  }

  // By column, of a line's two rows. A column more keeps the columns' readers from sharing banks.
  __shared__ float2 of_line[kLines][kPieceColumns + 1];
  const auto rows_of = [&](int of) {
    return counted_of(counted, first_row + of, 1) + counted_of(counted, first_row + kLines + of, 1);
  };
  const int rows = rows_of(line);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float2 first = values[0][k / 2], second = values[1][k / 2];
    const float a = k % 2 == 0 ? first.x : first.y, b = k % 2 == 0 ? second.x : second.y;
    const float half = (b - a) * 0.5F;
    of_line[line][quad * 4 + k] = rows == 2 ? make_float2(a + half, 2.0F * half * half) : make_float2(a, 0.0F);
  }
  __syncthreads();
  // Eight threads a column.
  constexpr int kReaders = kPieceThreads / kPieceColumns;
  const int column = static_cast<int>(threadIdx.x) / kReaders, reader = static_cast<int>(threadIdx.x) % kReaders;
  Moments all{0.0F, 0.0F, 0.0F};
#pragma unroll
  for (int i = reader; i < kLines; i += kReaders) {
    all = merge(all, {static_cast<float>(rows_of(i)), of_line[i][column].x, of_line[i][column].y});
  }
#pragma unroll
  for (int reach = kReaders / 2; reach > 0; reach /= 2) {
    all = merge(all, {__shfl_down_sync(kEveryLane, all.n, reach), __shfl_down_sync(kEveryLane, all.mean, reach),
                      __shfl_down_sync(kEveryLane, all.squares, reach)});
  }
  if (reader > 0 || first_column + column >= product.columns) return;
  product.statistics.slabs[int64_t{first_row / kSlabRows} * product.columns + first_column + column] =
      make_float2(all.mean, all.squares);
}

}  // namespace

void add_half_parts(const HalfPlan& plan, cudaStream_t stream) {
  const HalfProduct& product = plan.product;
  const HalfPhase& phase = product.phase[0];
  const HalfTile& tile = plan.tile_size();
  const bool bf16 = plan.element == HalfElement::kBf16;
  const int64_t tiles = int64_t{phase.row_tiles} * product.column_tiles - phase.whole_tiles;
  if (product.statistics.slabs != nullptr) {
    const int64_t row_pieces = tile.cluster_columns() / kPieceColumns,
                  tile_pieces = tile.cluster_rows() / kSlabRows * row_pieces;
    launch_with(bf16 ? add_parts_with_statistics<true> : add_parts_with_statistics<false>,
                {dim3(static_cast<unsigned>(tiles * tile_pieces)), dim3(kPieceThreads)}, {.early = true}, stream,
                product, tile.cluster_rows(), tile.cluster_columns(), Divider(tile_pieces), Divider(row_pieces));
    return;
  }
  const int64_t tile_quads = int64_t{tile.cluster_rows()} * tile.cluster_columns() / 4;
  launch_with(bf16 ? add_parts_of_half<true> : add_parts_of_half<false>, cuda::thread_each(tiles * tile_quads),
              {.early = true}, stream, product, Divider(tile_quads), Divider(tile.cluster_columns() / 4),
              tile.cluster_rows(), tiles * tile_quads);
}

}  // namespace gpunn::cuda_tiled
