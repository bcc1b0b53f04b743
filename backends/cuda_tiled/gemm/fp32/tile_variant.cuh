// Makes variants of the GEMM ladder from tile_gemm and a tile shape. For .cu files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "cuda_common/launch.hpp"
#include "gemm/fp32/tile_gemm.cuh"
#include "gemm/gemm_variants.hpp"
#include "gemm/launch_gemm.hpp"
#include "gemm/masked.hpp"

namespace gpunn::cuda_tiled {

template <class Shape>
unsigned tiles_of(const Gemm& problem) {
  return cuda::grid_size(problem.shape.m, Shape::kBlockM) * cuda::grid_size(problem.shape.n, Shape::kBlockN);
}

// If more than a quarter of the GPU would be idle, smaller tiles are better.
template <class Shape>
std::string refusal_of_tiles(const Gemm& problem) {
  return 4 * tiles_of<Shape>(problem) < 3U * static_cast<unsigned>(multiprocessors()) ? "it has too few tiles" : "";
}

template <class Shape>
void launch_tiles(void (*kernel)(GemmArguments), const GemmArguments& g, cudaStream_t stream) {
  allow_shared_memory(kernel, Shape::kSharedBytes);
  const unsigned tiles = grid_size(g.m, Shape::kBlockM) * grid_size(g.n, Shape::kBlockN);
  launch(kernel, {dim3(tiles), dim3(Shape::kThreads), Shape::kSharedBytes}, stream, g);
}

template <class Shape, int Bytes>
void run_tiles(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  with_transposes(problem, [&]<bool TransposeA, bool TransposeB>() {
    launch_tiles<Shape>(tile_gemm<Shape, TransposeA, TransposeB, Bytes>, arguments_of(problem, args), stream);
  });
}

template <class Shape, int Bytes>
void run_masked_tiles(const Gemm& problem, cudaStream_t stream, const OpArgs& args, unsigned* counters) {
  launch_tiles<Shape>(tile_gemm<Shape, false, false, Bytes, true>, masked_arguments_of(problem, args, counters),
                      stream);
}

template <class Shape>
std::string refusal_of_masked_tiles(const Gemm& problem) {
  return refusal_of_mask(problem, cuda::grid_size(problem.shape.m, Shape::kBlockM));
}

template <class Shape>
uint64_t bytes_of_masked_tiles(const Gemm& problem) {
  return bytes_of_parts(problem, cuda::grid_size(problem.shape.m, Shape::kBlockM));
}

// The tiles of gemm:7 if both operands are MN-major, and of gemm:11, which copies them to that layout.
using MnMajorTiles64 = TileShape<GemmTile{
    .block = {128, 64, 16}, .warp = {32, 64}, .thread = {8, 8}, .stages = 4, .slices = 2, .strip = 1, .settled = true}>;

inline bool mn_major(const Gemm& problem) { return problem.shape.transpose_a && !problem.shape.transpose_b; }

// Of an a [k, m] and a b [k, n], whose rows are whole quads.
template <class Shape>
void run_mn_major(const GemmArguments& g, cudaStream_t stream) {
  launch_tiles<Shape>(tile_gemm<Shape, true, false, kByQuads>, g, stream);
}

}  // namespace gpunn::cuda_tiled
