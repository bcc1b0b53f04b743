// Rungs made of tile_gemm and a shape of tiles. For .cu files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "cuda_common/launch.hpp"
#include "launch_gemm.hpp"
#include "tile_gemm.cuh"

namespace gpunn::cuda_tiled {

template <class Shape>
unsigned tiles_of(const Gemm& problem) {
  return tiles_of(problem.shape.m, Shape::kBlockM) * tiles_of(problem.shape.n, Shape::kBlockN);
}

template <class Shape, int Bytes>
void run_tiles(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  const GemmArguments g = arguments_of(problem, args);
  with_transposes(problem, [&]<bool TransposeA, bool TransposeB>() {
    constexpr auto kKernel = tile_gemm<Shape, TransposeA, TransposeB, Bytes>;
    allow_shared_memory(reinterpret_cast<const void*>(kKernel), Shape::kSharedBytes);
    launch(kKernel, {dim3(tiles_of<Shape>(problem)), dim3(Shape::kThreads), Shape::kSharedBytes}, stream, g);
  });
}

}  // namespace gpunn::cuda_tiled
