// gemm:5 to gemm:8, matrix products with warp tiles.
//
// gemm:4 makes 64 products of 16 loaded elements; threads with 16 x 8 sums make 128 of 24. The 32 threads of a warp
// cover 64 x 64 sums, as square as possible, so that each load of the warp serves most products. The order of the lanes
// avoids bank conflicts. The fragments of a step of k are loaded during the products of the previous step. An operand
// whose k is contiguous goes through registers, by 16 bytes, since copies of 4 bytes keep the load units busy.
// Neighbouring blocks share rows and columns, which the second-level cache then holds. The limit is the arithmetic
// itself and its register banks (multiply in register_tile.cuh).
//
// The best tile depends on the shape. gemm:5 has 128 x 256 for the largest, and gemm:6 128 x 128, two blocks at a time.
// gemm:7 has 128 x 64 for shapes where larger tiles would not fill the GPU, with two groups of warps that make the same
// sums over half of the steps each. gemm:8 is gemm:6 for rows that are no multiple of 4, with copies of 4 bytes.
//
// H200, gemm:5: 4096^3 in 2.71 ms, 50.7 TFLOP/s; 1.11 times gemm:3; cuBLAS 2.69 ms. gemm:6, b transposed: 2.76 ms,
// cuBLAS 2.73. gemm:7: 1024^3 in 56.1 us, cuBLAS 55.4; tn, its sums settled (register_tile.cuh), in 49.9 us, 53.0
// without, cuBLAS 52.3; nt in 55.0 us, cuBLAS 58.0. A loop of only such products of registers makes 59 TFLOP/s, not 66:
// an eighth of the products wait for a bank.
//
// Warp tiles as in Kerr and others, CUTLASS (2017); the order of lanes as in Gray, maxas (2014).
#include <string>
#include <vector>

#include "gemm/fp32/tile_variant.cuh"
#include "gemm/gemm_variants.hpp"

namespace gpunn::cuda_tiled {
namespace {

using Tiles128 =
    TileShape<GemmTile{.block = {128, 128, 16}, .warp = {64, 64}, .thread = {16, 8}, .stages = 3, .min_blocks = 2}>;
using Tiles256 =
    TileShape<GemmTile{.block = {128, 256, 8}, .warp = {64, 64}, .thread = {16, 8}, .stages = 4, .strip = 1}>;
using Tiles64 = TileShape<GemmTile{
    .block = {128, 64, 16}, .warp = {32, 64}, .thread = {8, 8}, .stages = 4, .slices = 2, .strip = 1}>;

template <class Shape>
std::string refuses(const Gemm& problem) {
  std::string refusal = refusal_of_size(problem);
  if (refusal.empty()) refusal = refusal_of_quads(problem);
  if (refusal.empty()) refusal = refusal_of_tiles<Shape>(problem);
  return refusal;
}

std::string refuses_quads(const Gemm& problem) {
  std::string refusal = refusal_of_size(problem);
  if (refusal.empty() && has_quads(problem)) refusal = "its rows are multiples of 4";
  return refusal;
}

std::string refuses_256(const Gemm& problem) {
  // Both halves of a b that is to be transposed would pass the registers, of which the sums leave too few.
  return problem.shape.transpose_b ? "b is transposed: gemm:6 is faster" : refuses<Tiles256>(problem);
}

void run_64(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  mn_major(problem) ? run_mn_major<MnMajorTiles64>(arguments_of(problem, args), stream)
                    : run_tiles<Tiles64, 16>(problem, stream, args);
}

template <class Shape>
Variant<Gemm> variant(const char* name, std::string (*refuses)(const Gemm&)) {
  return {.name = name, .refuses = refuses, .workspace_bytes = nullptr, .run = run_tiles<Shape, 16>};
}

template <class Shape, int Bytes, std::string (*Refuses)(const Gemm&)>
MaskedVariant masked_variant(const char* name) {
  const auto refuses_masked = [](const Gemm& problem) {
    const std::string refusal = Refuses(problem);
    return refusal.empty() ? refusal_of_masked_tiles<Shape>(problem) : refusal;
  };
  return {.name = name,
          .refuses = refuses_masked,
          .workspace_bytes = bytes_of_masked_tiles<Shape>,
          .run = run_masked_tiles<Shape, Bytes>};
}

}  // namespace

std::vector<Variant<Gemm>> warp_tiles_variants() {
  return {variant<Tiles256>("gemm:5", refuses_256),
          variant<Tiles128>("gemm:6", refuses<Tiles128>),
          {.name = "gemm:7", .refuses = refuses<Tiles64>, .workspace_bytes = nullptr, .run = run_64},
          {.name = "gemm:8", .refuses = refuses_quads, .workspace_bytes = nullptr, .run = run_tiles<Tiles128, 4>}};
}

std::vector<MaskedVariant> masked_warp_tiles_variants() {
  return {masked_variant<Tiles128, 16, refuses<Tiles128>>("gemm:6"),
          masked_variant<Tiles64, 16, refuses<Tiles64>>("gemm:7"),
          masked_variant<Tiles128, 4, refuses_quads>("gemm:8")};
}

}  // namespace gpunn::cuda_tiled
