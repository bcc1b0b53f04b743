// gemm:stream_k, stream-K matrix product: the steps of k, not the tiles, are divided among thread blocks.
//
// gemm:5 to gemm:8 give each block a tile. Then 144 tiles on 132 multiprocessors take as long as 264, and 32 tiles
// leave a hundred multiprocessors idle. Here the blocks that run at a time divide the steps of k of all tiles evenly. A
// block ends one tile, computes some whole tiles, and begins another, or computes a part of one. It stores whole tiles.
// It leaves the sums of a part in the workspace, and a second kernel adds the parts of each tile in the order of k.
// There are no atomics and no waits between blocks. The bits are the same each time, and the result is right for any
// number of resident blocks.
//
// Tiles are those of gemm:6, 128 x 128, or 64 x 64 if there are few steps or rows are no multiple of four. Parts are
// stored one float at a time: stores of four floats make 600 of 1024 products wait for a register bank, instead of 80.
// The sums of 64 x 64 tiles go through shared memory (shared_sums.cuh). The second kernel loads up to eight parts at
// once, to hide the latency of the second-level cache.
//
// H200, us, with the fastest of gemm:5 to gemm:11 and cuBLAS in the same process:
//
//                            nn                      nt                      tn
//   1500^3              161   215   185         163   225   170         161   202   176
//   1536^3              163   218   187         162   227   174         158   206   191
//   2560^3              701   852   810         686   874   721         681   773   732
//   3000 x 1000 x 4096  540   648   530         528   697   548         551   555   524
//   640 x 4096 x 4096   448   652   465         451   663   474         442   534   453
//   128 x 4096 x 4096   100   156    96         102   192   103         100   134    96
//   256 x 1024 x 8192   100   172    97         100   193   104         100   130    95
//   384 x 768 x 4096     61   114    66          61   137    70          60    93    61
//   512 x 512 x 4096     56    78    54          55    98    57          55    65    53
//   128 x 1024 x 4096    34    44    32          35    52    37          32    37    31
//   256 x 256 x 4096     21    25    22          22    29    24          20    21    19
//   1001^3               72    97    52          71    89    52          83   103    52
//   4096^3             2778  2706  2679        2757  2768  2730        2725  2672  2653
//
// If tiles fill the GPU anyway, as in the last line and at 2048^2, it is up to a tenth slower. If a product takes less
// than 15 us, the second kernel costs too much (512^3 tn: 12.1 us, gemm:10 10.3).
//
// Osama and others, Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU
// (PPoPP 2023).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "architecture.hpp"
#include "gemm/fp32/stream_k.cuh"
#include "gemm/fp32/tile_variant.cuh"
#include "gemm/gemm_variants.hpp"
#include "launch.hpp"

namespace gpunn::cuda_tiled {
namespace {

using Tiles64 = TileShape<GemmTile{
    .block = {64, 64, 32}, .warp = {32, 64}, .thread = {8, 8}, .stages = 3, .slices = 2, .min_blocks = 2}>;
// Where both operands pass through registers a third stage would only take registers, of which there are none left;
// where neither does, 8 warps on one tile are faster than 4 on each of two.
template <bool TransposeA, bool TransposeB>
using Tiles128 = std::conditional_t<
    TransposeA && !TransposeB,
    TileShape<GemmTile{
        .block = {128, 128, 16}, .warp = {64, 64}, .thread = {16, 8}, .stages = 3, .slices = 2, .settled = true}>,
    TileShape<GemmTile{.block = {128, 128, 16},
                       .warp = {64, 64},
                       .thread = {16, 8},
                       .stages = !TransposeA && TransposeB ? 2 : 3,
                       .min_blocks = 2}>>;

constexpr int kLeastSteps = 4;  // of a block

template <class Shape>
int64_t steps_of(const Gemm& problem) {
  return int64_t{tiles_of<Shape>(problem)} * cuda::grid_size(problem.shape.k, Shape::kBlockK);
}

template <class Shape>
int blocks_of(const Gemm& problem) {
  const int64_t most = int64_t{Shape::kMinBlocks} * multiprocessors();
  return static_cast<int>(std::clamp<int64_t>(steps_of<Shape>(problem) / kLeastSteps, 1, most));
}

// What it takes but for a constant, in tenths of a microsecond as fitted on an H200: for the steps of a block, and for
// adding up the parts of a tile.
template <class Shape>
double time_of(const Gemm& problem, double step, double part) {
  const double blocks = blocks_of<Shape>(problem);
  return step * static_cast<double>(steps_of<Shape>(problem)) / blocks + part * blocks / tiles_of<Shape>(problem);
}

bool takes_large_tiles(const Gemm& problem) {
  return has_quads(problem) &&
         time_of<Tiles128<false, false>>(problem, 28, 1) + 35 < time_of<Tiles64>(problem, 17.2, 0.5);
}

// Calls run.operator()<Shape, transpose_a, transpose_b, bytes>().
template <class Run>
void with_shape(const Gemm& problem, Run&& run) {
  with_transposes(problem, [&]<bool TransposeA, bool TransposeB>() {
    if (takes_large_tiles(problem)) {
      run.template operator()<Tiles128<TransposeA, TransposeB>, TransposeA, TransposeB, kByQuads>();
    } else if (has_quads(problem)) {
      run.template operator()<Tiles64, TransposeA, TransposeB, kByQuads>();
    } else {
      run.template operator()<Tiles64, TransposeA, TransposeB, kByFloats>();
    }
  });
}

std::string refuses(const Gemm& problem) {
  std::string refusal = refusal_of_size(problem);
  if (!refusal.empty()) return refusal;
  // Beyond, less than a tenth of the time of whole tiles is that of the last, and trying would take long.
  constexpr unsigned kMostTiles = 8;  // a multiprocessor
  if (tiles_of<Tiles128<false, false>>(problem) > kMostTiles * static_cast<unsigned>(multiprocessors())) {
    return "its tiles fill the GPU often enough";
  }
  if (steps_of<Tiles64>(problem) > std::numeric_limits<int>::max() / 2) return "it is too large";
  return {};
}

uint64_t workspace_bytes(const Gemm& problem) {
  uint64_t bytes = 0;
  with_shape(problem, [&]<class Shape, bool, bool, int>() {
    bytes = sizeof(float) * 2 * static_cast<uint64_t>(blocks_of<Shape>(problem)) * Shape::kBlockM * Shape::kBlockN;
  });
  return bytes;
}

template <class Shape, class How>
void add_parts(const StreamKArguments& s, cudaStream_t stream) {
  launch_with(add_stream_k_parts<Shape, How>,
              {dim3(static_cast<unsigned>(s.tiles), kQuadsOfThread<Shape> / How::kQuads), dim3(kThreadsOfSlice<Shape>)},
              {.early = true}, stream, s);
}

void run(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  with_shape(problem, [&]<class Shape, bool TransposeA, bool TransposeB, int Bytes>() {
    const StreamKArguments s{.g = arguments_of(problem, args),
                             .parts = args.workspace<float>(),
                             .tiles = static_cast<int>(tiles_of<Shape>(problem)),
                             .steps_of_tile = static_cast<int>(cuda::divide_up(problem.shape.k, Shape::kBlockK)),
                             .steps = static_cast<int>(steps_of<Shape>(problem)),
                             .blocks = blocks_of<Shape>(problem)};
    constexpr auto kKernel = stream_k_gemm<Shape, TransposeA, TransposeB, Bytes>;
    allow_shared_memory(kKernel, Shape::kSharedBytes);
    launch(kKernel, {dim3(static_cast<unsigned>(s.blocks)), dim3(Shape::kThreads), Shape::kSharedBytes}, stream, s);
    constexpr int kMany = 4;  // parts of a large tile
    if constexpr (!std::is_same_v<Shape, Tiles64>) {
      if (s.blocks < kMany * s.tiles) return add_parts<Shape, FewParts>(s, stream);
    }
    add_parts<Shape, ManyParts>(s, stream);
  });
}

}  // namespace

Variant<Gemm> stream_k_variant() {
  return {.name = "gemm:stream_k", .refuses = refuses, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace gpunn::cuda_tiled
