// Launching the Hopper kernels of the GEMM ladder.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "architecture.hpp"
#include "gemm/wgmma/bf16_operand.hpp"
#include "cuda_common/check.hpp"
#include "launch.hpp"
#include "shared_memory.hpp"
#include "gemm/wgmma/tensor_map.hpp"
#include "gemm/wgmma/wgmma.hpp"
#include "gemm/wgmma/wgmma_persistent.cuh"
#include "gemm/wgmma/wgmma_small.cuh"
#include "gemm/wgmma/wgmma_split.cuh"

namespace gpunn::cuda_tiled {

inline constexpr int kBandRows = 2048;

// Of kSplit (two consumers) and kSplitLow (one): as many stages as shared memory has room for. With so few that two
// blocks fit, the next product's beside this one's, kSplitLow was slower at 1024^3, 11.0 us instead of 10.0 in TF32.
template <class Element, Along kAlongA, Along kAlongB, int kConsumers>
using SplitTiling = Tiling<Element, kAlongA, kAlongB, kConsumers, 128, kConsumers == 2 ? 6 : 8>;

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

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
  const int64_t tiles = divide_up(rows, T::kRows) * divide_up(columns, T::kColumns);
  const int64_t k_blocks = divide_up(k, T::kBlockK);
  int parts = 1;
  for (int more = 2; more <= kMostParts; more *= 2) {
    if (k_blocks / more >= kLeastBlocks && tiles <= clusters_at_a_time<T, kTransposed, kMasked>(more)) parts = more;
  }
  return parts;
}

// The tensor map of an operand of which a box has `lines` lines where K runs along them.
template <class T>
CUtensorMap operand_map(const MatrixInMemory& matrix, Along along, int lines) {
  const int box = along == Along::kK ? lines : T::kBlockK;
  return T::kTf32 ? tf32_tensor_map(matrix, box) : bf16_tensor_map(matrix, box);
}

template <class Element, Along kAlongA, Along kAlongB, bool kTransposed>
void launch_persistent(int share, const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out, int64_t k,
                       cudaStream_t stream) {
  using T = Tiling<Element, kAlongA, kAlongB, 2, 256, 4>;
  const TileOrder order{.row_tiles = static_cast<int>(divide_up(out.rows, int64_t{T::kRows} * share)),
                        .column_tiles = static_cast<int>(divide_up(out.columns, T::kColumns)),
                        .band = kBandRows / (T::kRows * share)};
  const int64_t tiles = int64_t{order.row_tiles} * order.column_tiles;
  const auto clusters = static_cast<unsigned>(std::min<int64_t>(tiles, multiprocessors() / share));
  launch_wgmma(wgmma_persistent<T, kTransposed>, dim3(clusters * static_cast<unsigned>(share)),
               dim3(static_cast<unsigned>(share)), T::kThreads, T::kSharedBytes, stream,
               operand_map<T>(a, kAlongA, T::kRows), operand_map<T>(b, kAlongB, T::kColumns / share), out, order, share,
               static_cast<int>(divide_up(k, T::kBlockK)));
}

template <class Element, Along kAlongA, Along kAlongB, bool kTransposed, int kConsumers, bool kMasked = false>
void launch_split(const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out, int64_t k,
                  cudaStream_t stream) {
  using T = SplitTiling<Element, kAlongA, kAlongB, kConsumers>;
  const int blocks = static_cast<int>(divide_up(k, T::kBlockK));
  const int row_tiles = static_cast<int>(divide_up(out.rows, T::kRows));
  const int64_t tiles = row_tiles * divide_up(out.columns, T::kColumns);
  const int parts = split_parts<T, kTransposed, kMasked>(out.rows, out.columns, k);
  const int share = parts == 1 && row_tiles % 2 == 0 ? 2 : 1;
  launch_wgmma(wgmma_split<T, kTransposed, kMasked>, dim3(static_cast<unsigned>(parts), static_cast<unsigned>(tiles)),
               dim3(static_cast<unsigned>(parts), static_cast<unsigned>(share)), T::kThreads, T::kSharedBytes, stream,
               operand_map<T>(a, kAlongA, T::kRows), operand_map<T>(b, kAlongB, T::kColumns / share), out, row_tiles,
               share, blocks);
}

template <class Element, Along kAlongA, Along kAlongB, int kConsumers, int kColumns>
void launch_small_tiles(int share, const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out, int64_t k,
                        cudaStream_t stream) {
  using T = SmallTiling<Element, kAlongA, kAlongB, kConsumers, kColumns>;
  const auto rows = static_cast<unsigned>(divide_up(out.rows, T::kRows));
  const auto columns = static_cast<unsigned>(divide_up(out.columns, T::kColumns));
  launch_wgmma(wgmma_small<T>, dim3(rows, columns), dim3(1, static_cast<unsigned>(share)), T::kThreads, T::kSharedBytes,
               stream, operand_map<T>(a, kAlongA, T::kRows / share), operand_map<T>(b, kAlongB, T::kColumns), out,
               share, static_cast<int>(divide_up(k, T::kBlockK)));
}

// The tiles with which the multiprocessor that has the most of them reads the fewest lines.
template <class Element, Along kAlongA, Along kAlongB>
void launch_small(const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out, int64_t k,
                  cudaStream_t stream) {
  constexpr int kLong = 64;  // blocks of K from which on sharing a is worth a cluster
  const auto lines = [&](int rows, int columns) {
    const int64_t tiles = divide_up(out.rows, rows) * divide_up(out.columns, columns);
    return divide_up(tiles, multiprocessors()) * (rows + columns);
  };
  const int64_t high = lines(128, 64), wide = lines(64, 128), square = lines(64, 64), narrow = lines(64, 32);
  // A box of bfloat16 that has K as its rows is 64 wide.
  constexpr bool kNarrow = Element::kBlockK <= 32 || kAlongB == Along::kK;
  if (kNarrow && narrow < std::min({high, wide, square})) {
    if constexpr (kNarrow) launch_small_tiles<Element, kAlongA, kAlongB, 1, 32>(1, a, b, out, k, stream);
  } else if (square < std::min(high, wide)) {
    launch_small_tiles<Element, kAlongA, kAlongB, 1, 64>(1, a, b, out, k, stream);
  } else if (wide < high || (wide == high && k >= int64_t{kLong} * Element::kBlockK)) {
    const bool pairs = kAlongA == Along::kK && divide_up(out.columns, 128) % 2 == 0;
    launch_small_tiles<Element, kAlongA, kAlongB, 1, 128>(pairs ? 2 : 1, a, b, out, k, stream);
  } else {
    launch_small_tiles<Element, kAlongA, kAlongB, 2, 64>(1, a, b, out, k, stream);
  }
}

// y' = a' b'^T by the kernel that is asked for.
template <class Element, Along kAlongA, Along kAlongB, bool kTransposed>
void launch_wgmma_kernel(WgmmaKernel kernel, const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out,
                         int64_t k, cudaStream_t stream) {
  switch (kernel) {
    case WgmmaKernel::kPersistent:
      return launch_persistent<Element, kAlongA, kAlongB, kTransposed>(1, a, b, out, k, stream);
    case WgmmaKernel::kMulticast:
      return launch_persistent<Element, kAlongA, kAlongB, kTransposed>(2, a, b, out, k, stream);
    case WgmmaKernel::kSplit:
      return launch_split<Element, kAlongA, kAlongB, kTransposed, 2>(a, b, out, k, stream);
    case WgmmaKernel::kSplitLow:
      return launch_split<Element, kAlongA, kAlongB, kTransposed, 1>(a, b, out, k, stream);
    case WgmmaKernel::kSmall:
      if constexpr (Element::kBlockK > 32 || (kAlongA == Along::kK && kAlongB == Along::kK)) {
        launch_small<Element, kAlongA, kAlongB>(a, b, out, k, stream);
      }
      return;
  }
}

}  // namespace gpunn::cuda_tiled
