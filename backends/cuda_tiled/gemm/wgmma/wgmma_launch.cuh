// Launches the Hopper kernels of the GEMM ladder.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "architecture.hpp"
#include "cuda_common/check.hpp"
#include "cuda_common/divide_up.hpp"
#include "gemm/wgmma/bf16_operand.hpp"
#include "gemm/wgmma/tensor_map.hpp"
#include "gemm/wgmma/wgmma.hpp"
#include "gemm/wgmma/wgmma_persistent.cuh"
#include "gemm/wgmma/wgmma_small.cuh"
#include "gemm/wgmma/wgmma_split.cuh"
#include "launch.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {

inline constexpr int kBandRows = 2048;

template <WgmmaOperands kOperands>
using PersistentTiling = Tiling<WgmmaTile{.operands = kOperands, .consumers = 2, .columns = 256, .stages = 4}>;

// Of kSplit (two consumers) and kSplitLow (one): as many stages as shared memory has room for. With so few that two
// blocks fit, the next product's beside this one's, kSplitLow was slower at 1024^3, 11.0 us instead of 10.0 in TF32.
template <WgmmaOperands kOperands, int kConsumers>
using SplitTiling = Tiling<WgmmaTile{
    .operands = kOperands, .consumers = kConsumers, .columns = 128, .stages = kConsumers == 2 ? 6 : 8}>;

template <class... Parameters>
void launch_wgmma(void (*kernel)(Parameters...), dim3 grid, dim3 cluster, int threads, int shared_bytes,
                  cudaStream_t stream, Parameters... parameters) {
  allow_shared_memory(kernel, shared_bytes);
  launch_with(kernel, {grid, dim3(static_cast<unsigned>(threads)), static_cast<unsigned>(shared_bytes)},
              {.cluster = cluster, .early = true}, stream, parameters...);
}

// How many clusters of `parts` blocks the GPU runs at a time: fewer than its multiprocessors have room for, as a
// cluster can't span two groups of them.
template <class T, bool kTransposed, bool kMasked>
int clusters_at_a_time(int parts) {
  static const std::array<int, kMostParts + 1> counts = [] {
    std::array<int, kMostParts + 1> found{};
    allow_shared_memory(wgmma_split<T, kTransposed, kMasked>, T::kSharedBytes);
    for (int size = 1; size <= kMostParts; size *= 2) {
      const auto blocks = static_cast<unsigned>(size);
      const LaunchConfig config({dim3(blocks), dim3(T::kThreads), T::kSharedBytes}, {.cluster = dim3(blocks)}, nullptr);
      int& count = found[static_cast<std::size_t>(size)];
      cuda::check(cudaOccupancyMaxActiveClusters(&count, wgmma_split<T, kTransposed, kMasked>, &config.get()),
                  "asking how many clusters fit");
    }
    return found;
  }();
  return counts[static_cast<std::size_t>(parts)];
}

// Blocks a tile of a y' of so many rows and columns: as many as the GPU runs at a time, with work for the ring of each.
template <class T, bool kTransposed, bool kMasked>
int split_parts(int64_t rows, int64_t columns, int64_t k) {
  constexpr int kLeastBlocks = 4;
  const int64_t tiles = cuda::divide_up(rows, T::kRows) * cuda::divide_up(columns, T::kColumns);
  const int64_t k_blocks = cuda::divide_up(k, T::kBlockK);
  int parts = 1;
  for (int more = 2; more <= kMostParts; more *= 2) {
    if (k_blocks / more >= kLeastBlocks && tiles <= clusters_at_a_time<T, kTransposed, kMasked>(more)) parts = more;
  }
  return parts;
}

// The tensor map of an operand of which a box has `lines` lines where K runs along them.
template <class T>
CUtensorMap operand_map(const MatrixInMemory& matrix, Major major, int lines) {
  const int box = major == Major::kK ? lines : T::kBlockK;
  return T::kTf32 ? tf32_tensor_map(matrix, box) : bf16_tensor_map(matrix, box);
}

template <WgmmaOperands kOperands, bool kTransposed>
void launch_persistent(const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out, int64_t k,
                       cudaStream_t stream) {
  using T = PersistentTiling<kOperands>;
  const TileOrder order{.row_tiles = static_cast<int>(cuda::divide_up(out.rows, T::kRows)),
                        .column_tiles = static_cast<int>(cuda::divide_up(out.columns, T::kColumns)),
                        .band = kBandRows / T::kRows};
  const int64_t tiles = int64_t{order.row_tiles} * order.column_tiles;
  launch_wgmma(
      wgmma_persistent<T, kTransposed>, dim3(static_cast<unsigned>(std::min<int64_t>(tiles, multiprocessors()))),
      dim3(1), T::kThreads, T::kSharedBytes, stream, operand_map<T>(a, T::kMajorA, T::kRows),
      operand_map<T>(b, T::kMajorB, T::kColumns), out, order, static_cast<int>(cuda::divide_up(k, T::kBlockK)));
}

template <WgmmaOperands kOperands, bool kTransposed, int kConsumers, bool kMasked = false>
void launch_split(const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out, int64_t k,
                  cudaStream_t stream) {
  using T = SplitTiling<kOperands, kConsumers>;
  const int blocks = static_cast<int>(cuda::divide_up(k, T::kBlockK));
  const int row_tiles = static_cast<int>(cuda::divide_up(out.rows, T::kRows));
  const int64_t tiles = row_tiles * cuda::divide_up(out.columns, T::kColumns);
  const int parts = split_parts<T, kTransposed, kMasked>(out.rows, out.columns, k);
  const int share = parts == 1 && row_tiles % 2 == 0 ? 2 : 1;
  launch_wgmma(wgmma_split<T, kTransposed, kMasked>, dim3(static_cast<unsigned>(parts), static_cast<unsigned>(tiles)),
               dim3(static_cast<unsigned>(parts), static_cast<unsigned>(share)), T::kThreads, T::kSharedBytes, stream,
               operand_map<T>(a, T::kMajorA, T::kRows), operand_map<T>(b, T::kMajorB, T::kColumns / share), out,
               row_tiles, share, blocks);
}

template <WgmmaOperands kOperands, int kConsumers, int kColumns>
void launch_small_tiles(int share, const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out, int64_t k,
                        cudaStream_t stream) {
  using T = SmallTiling<kOperands, kConsumers, kColumns>;
  const auto rows = cuda::grid_size(out.rows, T::kRows);
  const auto columns = cuda::grid_size(out.columns, T::kColumns);
  launch_wgmma(wgmma_small<T>, dim3(rows, columns), dim3(1, static_cast<unsigned>(share)), T::kThreads, T::kSharedBytes,
               stream, operand_map<T>(a, T::kMajorA, T::kRows / share), operand_map<T>(b, T::kMajorB, T::kColumns), out,
               share, static_cast<int>(cuda::divide_up(k, T::kBlockK)));
}

// The tiles with which the multiprocessor that has the most of them reads the fewest lines.
template <WgmmaOperands kOperands>
void launch_small(const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out, int64_t k,
                  cudaStream_t stream) {
  constexpr int kLong = 64;  // blocks of K from which on sharing a is worth a cluster
  const auto lines = [&](int rows, int columns) {
    const int64_t tiles = cuda::divide_up(out.rows, rows) * cuda::divide_up(out.columns, columns);
    return cuda::divide_up(tiles, multiprocessors()) * (rows + columns);
  };
  const int64_t high = lines(128, 64), wide = lines(64, 128), square = lines(64, 64), narrow = lines(64, 32);
  // A box of bfloat16 that has K as its rows is 64 wide.
  constexpr bool kNarrow = kOperands.block_k() <= 32 || kOperands.b == Major::kK;
  if (kNarrow && narrow < std::min({high, wide, square})) {
    if constexpr (kNarrow) launch_small_tiles<kOperands, 1, 32>(1, a, b, out, k, stream);
  } else if (square < std::min(high, wide)) {
    launch_small_tiles<kOperands, 1, 64>(1, a, b, out, k, stream);
  } else if (wide < high || (wide == high && k >= int64_t{kLong} * kOperands.block_k())) {
    const bool pairs = kOperands.a == Major::kK && cuda::divide_up(out.columns, 128) % 2 == 0;
    launch_small_tiles<kOperands, 1, 128>(pairs ? 2 : 1, a, b, out, k, stream);
  } else {
    launch_small_tiles<kOperands, 2, 64>(1, a, b, out, k, stream);
  }
}

// y' = a' b'^T by the kernel that is asked for.
template <WgmmaOperands kOperands, bool kTransposed>
void launch_wgmma_kernel(WgmmaKernel kernel, const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out,
                         int64_t k, cudaStream_t stream) {
  switch (kernel) {
    case WgmmaKernel::kPersistent:
      return launch_persistent<kOperands, kTransposed>(a, b, out, k, stream);
    case WgmmaKernel::kSplit:
      return launch_split<kOperands, kTransposed, 2>(a, b, out, k, stream);
    case WgmmaKernel::kSplitLow:
      return launch_split<kOperands, kTransposed, 1>(a, b, out, k, stream);
    case WgmmaKernel::kSmall:
      if constexpr (kOperands.block_k() > 32 || (kOperands.a == Major::kK && kOperands.b == Major::kK)) {
        launch_small<kOperands>(a, b, out, k, stream);
      }
      return;
  }
}

}  // namespace gpunn::cuda_tiled
