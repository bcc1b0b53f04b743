// gemm:12, matrix product with small tiles, whose k all eight warps of a thread block share.
//
// Products of 0.2 to 1.5 billion multiplications have too few tiles of 128 x 64 for the multiprocessors, and the 32 x
// 32 tiles of gemm:10 read shared memory as often as they multiply. A warp's reads for a product depend on the warp's
// tile, not on the block's. So here a block computes as many sums as one warp can hold, 64 x 32 or 64 x 64. Each of its
// eight warps makes an eighth of every tile's steps of k. The eight sets of sums are added in shared memory. If there
// are still too few tiles, a cluster of two or three blocks shares each. Operands that must be transposed come by
// asynchronous copies of 4 bytes, two tiles ahead. Loads into registers are one tile ahead, too late for so few
// products (512^3 nn: 12.0 us, 11.3 by copies).
//
// H200, us, with the fastest of gemm:5 to gemm:10 and stream-K, and cuBLAS in the same process:
//
//                            nn                      nt                      tn                      tt
//   512^3               11.3  12.0  13.0        11.9  13.7  13.6         9.6  10.3  12.9        10.1  12.1  12.9
//   512 x 1024 x 1024   31.2  33.4  32.5        33.5  33.9  33.1        28.3  32.4  31.8        30.1  33.5  32.4
//   64 x 2048 x 2048    20.1  20.1  19.7        21.0  21.1  22.1        18.4  18.9  19.2        19.4  20.3  20.6
//   128 x 1024 x 4096   37.3  33.9  32.3        38.8  35.4  37.2        31.5  32.2  31.4        34.3  34.3  34.0
//
// From 768^3 on stream-K and gemm:7 are faster, and with fewer tiles stream-K and gemm:9.
#include <algorithm>
#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "gemm/fp32/sliced_gemm.cuh"
#include "gemm/fp32/tile_variant.cuh"
#include "gemm/gemm_variants.hpp"
#include "launch.hpp"

namespace gpunn::cuda_tiled {
namespace {

using Tiles32 = TileShape<GemmTile{
    .block = {64, 32, 32}, .warp = {64, 32}, .thread = {8, 8}, .stages = 3, .slices = 8, .min_blocks = 2, .strip = 1}>;
using Tiles64 =
    TileShape<GemmTile{.block = {64, 64, 32}, .warp = {64, 64}, .thread = {16, 8}, .stages = 3, .slices = 8}>;

// Whether the larger tiles fill the GPU once.
bool takes_large_tiles(const Gemm& problem) {
  const unsigned tiles = tiles_of<Tiles64>(problem);
  const auto room = static_cast<unsigned>(multiprocessors());
  return tiles <= room && 4 * tiles >= 3 * room && shared_memory_of_block() >= kSlicedBytes<Tiles64>;
}

std::string refuses(const Gemm& problem) {
  std::string refusal = refusal_of_size(problem);
  if (refusal.empty()) refusal = refusal_of_quads(problem);
  if (!refusal.empty()) return refusal;
  const unsigned tiles = tiles_of<Tiles32>(problem);
  const auto room = static_cast<unsigned>(multiprocessors());
  if (4 * tiles < room) return "it has too few tiles";
  if (tiles > 2 * room) return "it has too many small tiles";
  if (shared_memory_of_block() < kSlicedBytes<Tiles32>) return "the GPU has too little shared memory";
  return {};
}

template <class Shape>
void run_sliced(const Gemm& problem, unsigned ranks, cudaStream_t stream, const OpArgs& args) {
  GemmArguments g = arguments_of(problem, args);
  const int64_t share = cuda::divide_up(problem.shape.k, ranks);
  g.k_of_split = static_cast<int>(cuda::divide_up(share, Shape::kBlockK) * Shape::kBlockK);
  const Launch shape{dim3(tiles_of<Shape>(problem), 1, ranks), dim3(Shape::kThreads), kSlicedBytes<Shape>};
  with_transposes(problem, [&]<bool TransposeA, bool TransposeB>() {
    constexpr auto kKernel = sliced_gemm<Shape, TransposeA, TransposeB, kByQuadsAndCopies>;
    allow_shared_memory(kKernel, kSlicedBytes<Shape>);
    if (ranks == 1) return launch(kKernel, shape, stream, g);
    launch_with(kKernel, shape, {.cluster = dim3(1, 1, ranks)}, stream, g);
  });
}

void run(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  if (takes_large_tiles(problem)) return run_sliced<Tiles64>(problem, 1, stream, args);
  const unsigned fitting = static_cast<unsigned>(multiprocessors()) / tiles_of<Tiles32>(problem);
  const unsigned ranks = compute_capability() < 90 ? 1 : std::clamp<unsigned>(fitting, 1, kMostRanks);
  run_sliced<Tiles32>(problem, ranks, stream, args);
}

}  // namespace

Variant<Gemm> sliced_tiles_variant() {
  return {.name = "gemm:12", .refuses = refuses, .workspace_bytes = nullptr, .run = run};
}

}  // namespace gpunn::cuda_tiled
