// Finds the gradients behind dense layers that dense_runs.hpp subgraphs.
#pragma once

#include <gpunn/subgraph.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpunn::cuda_tiled {

// The ids of what a run of two ops reads and writes; none where there is no run.
struct DenseRun {
  std::size_t ops = 0;
  std::array<int32_t, 3> inputs{};   // dy, w, y
  std::array<int32_t, 2> outputs{};  // dx, the bias's gradient
};

DenseRun match_dense(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

}  // namespace gpunn::cuda_tiled
