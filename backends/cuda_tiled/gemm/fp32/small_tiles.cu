// gemm:9 and gemm:10, matrix products with small tiles and k split over a cluster of thread blocks (split-K), for small
// networks.
//
// A layer of 120 neurons at batch 128 has 15,360 sums: a tile of 128 x 128 would use one of 132 multiprocessors. Tiles
// of 32 x 32 and 16 x 32 use 16 and 32. Inside a block four warps compute the same sums, each over a quarter of the
// steps (slices), so that a step's latency counts a quarter as often. If there are still too few tiles, k is split over
// a cluster of up to 8 blocks, each of which makes partial sums. On Hopper the blocks add them through distributed
// shared memory in the order of their ranks: no second kernel, no atomics, the same result every time. On older GPUs
// the blocks write the partial sums to memory, and a second kernel adds them.
//
// H200, in a graph, nn: 128 x 120 x 400 in 4.3 us, cuBLAS 6.6; 128 x 84 x 120 in 2.9 us, cuBLAS 6.9; 128 x 128 x 784 in
// 4.7 us, cuBLAS 7.9; 784 x 128 x 128 in 3.6 us, cuBLAS 4.7; 256^3 in 4.0 us, cuBLAS 6.7; 512^3 in 12.0 us, cuBLAS
// 12.7. A kernel that does next to nothing takes 1.1 us there, and splitting over a cluster costs 1.1 us (784 x 128 x
// 128 in clusters of one).
#include <algorithm>
#include <cstdint>

#include "architecture.hpp"
#include "gemm/fp32/tile_variant.cuh"
#include "gemm/gemm_variants.hpp"
#include "launch.hpp"

namespace gpunn::cuda_tiled {
namespace {

using Tiles32 =
    TileShape<GemmTile{.block = {32, 32, 32}, .warp = {16, 32}, .thread = {4, 4}, .stages = 3, .slices = 4}>;
using Tiles16 =
    TileShape<GemmTile{.block = {16, 32, 32}, .warp = {16, 32}, .thread = {4, 4}, .stages = 3, .slices = 4}>;
constexpr int kMostSplits = 8;  // blocks of a cluster, on any GPU that has clusters

// How much of k a block takes: so much that the blocks fill the GPU once, and at least one tile.
template <class Shape>
int k_of_split(const Gemm& problem) {
  const int64_t tiles = tiles_of<Shape>(problem);
  const int64_t splits = std::clamp<int64_t>(multiprocessors() / tiles, 1, kMostSplits);
  const int64_t share = cuda::divide_up(problem.shape.k, splits);
  return static_cast<int>(cuda::divide_up(share, Shape::kBlockK) * Shape::kBlockK);
}

template <class Shape>
int splits_of(const Gemm& problem) {
  return static_cast<int>(cuda::divide_up(problem.shape.k, k_of_split<Shape>(problem)));
}

template <class Shape, int Most>
std::string refuses(const Gemm& problem) {
  std::string refusal = refusal_of_size(problem);
  // Beyond, larger tiles are faster, and trying these would only take time.
  if (refusal.empty() && tiles_of<Shape>(problem) > unsigned{Most}) refusal = "it has too many small tiles";
  return refusal;
}

template <class Shape>
uint64_t workspace_bytes(const Gemm& problem) {
  const int splits = splits_of<Shape>(problem);
  if (splits == 1 || compute_capability() >= 90) return 0;
  return sizeof(float) * static_cast<uint64_t>(splits) * static_cast<uint64_t>(problem.shape.m * problem.shape.n);
}

template <class Shape, int Bytes>
void run_splits(const Gemm& problem, int share, cudaStream_t stream, const OpArgs& args) {
  GemmArguments g = arguments_of(problem, args);
  g.k_of_split = share;
  const int splits = static_cast<int>(cuda::divide_up(problem.shape.k, share));
  const Launch shape{dim3(tiles_of<Shape>(problem), 1, static_cast<unsigned>(splits)), dim3(Shape::kThreads),
                     Shape::kSharedBytes};
  with_transposes(problem, [&]<bool TransposeA, bool TransposeB>() {
    if (compute_capability() >= 90) {
      constexpr auto kKernel = cluster_gemm<Shape, TransposeA, TransposeB, Bytes>;
      allow_shared_memory(kKernel, Shape::kSharedBytes);
      launch_with(kKernel, shape, {.cluster = dim3(1, 1, shape.grid.z)}, stream, g);
      return;
    }
    GemmArguments partial = g;
    partial.y = args.workspace<float>();
    partial.epilogue = {};
    constexpr auto kKernel = tile_gemm<Shape, TransposeA, TransposeB, Bytes>;
    allow_shared_memory(kKernel, Shape::kSharedBytes);
    launch(kKernel, shape, stream, partial);
    add_parts(partial.y, splits, problem.shape.m * problem.shape.n, g.n, g.epilogue, g.y, stream);
  });
}

// The share of k of a block of gemm:9 in a cluster. A multiprocessor holds several of these small blocks, so that two
// fill it better than one, as long as each has four tiles.
int k_of_small_block(const Gemm& problem) {
  const int usual = k_of_split<Tiles16>(problem);
  const int splits = splits_of<Tiles16>(problem);
  if (splits == 1 || compute_capability() < 90) return usual;
  const auto tiles = static_cast<int>(cuda::divide_up(problem.shape.k, Tiles16::kBlockK));
  const int wanted = std::clamp(std::min(2 * splits, (tiles + 3) / 4), splits, kMostSplits);
  const auto share = cuda::grid_size(problem.shape.k, wanted);
  return static_cast<int>(cuda::divide_up(share, Tiles16::kBlockK)) * Tiles16::kBlockK;
}

template <class Shape, int Bytes>
void run_share(const Gemm& problem, int share, cudaStream_t stream, const OpArgs& args) {
  share < problem.shape.k ? run_splits<Shape, Bytes>(problem, share, stream, args)
                          : run_tiles<Shape, Bytes>(problem, stream, args);
}

// Loads of 16 bytes that transpose hold one tile in registers, whose few products can't cover the next one's loads.
// With gemm:9's copies of 4 bytes, with all stages on their way, are faster but for the shortest sums,
void run_16(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  const int share = k_of_small_block(problem);
  if (!has_quads(problem)) return run_share<Tiles16, kByFloats>(problem, share, stream, args);
  const bool few = share <= 4 * Tiles16::kBlockK && problem.shape.k <= 512;
  few ? run_share<Tiles16, kByQuads>(problem, share, stream, args)
      : run_share<Tiles16, kByQuadsAndCopies>(problem, share, stream, args);
}

// and with gemm:10's where both operands need them, over a long k.
void run_32(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  const int share = k_of_split<Tiles32>(problem);
  const bool both_transposed = !problem.shape.transpose_a && problem.shape.transpose_b;
  const bool quads = has_quads(problem) && !(both_transposed && share > 512);
  quads ? run_share<Tiles32, kByQuads>(problem, share, stream, args)
        : run_share<Tiles32, kByFloats>(problem, share, stream, args);
}

template <class Shape>
Variant<Gemm> variant(const char* name, decltype(Variant<Gemm>::refuses) refuses, decltype(Variant<Gemm>::run) run) {
  return {.name = name, .refuses = refuses, .workspace_bytes = workspace_bytes<Shape>, .run = run};
}

// Blocks of a cluster have a part of each column of a tile.
template <class Shape>
int64_t parts_of_columns(const Gemm& problem) {
  return int64_t{cuda::grid_size(problem.shape.m, Shape::kBlockM)} * splits_of<Shape>(problem);
}

template <class Shape, std::string (*Refuses)(const Gemm&)>
std::string refuses_masked(const Gemm& problem) {
  std::string refusal = Refuses(problem);
  if (refusal.empty()) refusal = refusal_of_mask(problem, parts_of_columns<Shape>(problem));
  if (refusal.empty() && splits_of<Shape>(problem) > 1 && compute_capability() < 90) refusal = "it takes clusters";
  return refusal;
}

template <class Shape>
uint64_t masked_workspace_bytes(const Gemm& problem) {
  return bytes_of_parts(problem, parts_of_columns<Shape>(problem));
}

template <class Shape, int Bytes>
void run_masked(const Gemm& problem, cudaStream_t stream, const OpArgs& args, unsigned* counters) {
  const int splits = splits_of<Shape>(problem);
  if (splits == 1) return run_masked_tiles<Shape, Bytes>(problem, stream, args, counters);
  GemmArguments g = masked_arguments_of(problem, args, counters);
  g.k_of_split = k_of_split<Shape>(problem);
  const auto ranks = static_cast<unsigned>(splits);
  constexpr auto kKernel = cluster_gemm<Shape, false, false, Bytes, true>;
  allow_shared_memory(kKernel, Shape::kSharedBytes);
  launch_with(kKernel, {dim3(tiles_of<Shape>(problem), 1, ranks), dim3(Shape::kThreads), Shape::kSharedBytes},
              {.cluster = dim3(1, 1, ranks)}, stream, g);
}

template <class Shape, std::string (*Refuses)(const Gemm&)>
MaskedVariant masked_variant(const char* name) {
  return {.name = name,
          .refuses = refuses_masked<Shape, Refuses>,
          .workspace_bytes = masked_workspace_bytes<Shape>,
          .run = [](const Gemm& problem, cudaStream_t stream, const OpArgs& args, unsigned* counters) {
            const auto run = has_quads(problem) ? run_masked<Shape, 16> : run_masked<Shape, 4>;
            run(problem, stream, args, counters);
          }};
}

}  // namespace

std::vector<Variant<Gemm>> small_tiles_variants() {
  return {variant<Tiles16>("gemm:9", refuses<Tiles16, 256>, run_16),
          variant<Tiles32>("gemm:10", refuses<Tiles32, 2048>, run_32)};
}

std::vector<MaskedVariant> masked_small_tiles_variants() {
  return {masked_variant<Tiles16, refuses<Tiles16, 256>>("gemm:9"),
          masked_variant<Tiles32, refuses<Tiles32, 2048>>("gemm:10")};
}

}  // namespace gpunn::cuda_tiled
