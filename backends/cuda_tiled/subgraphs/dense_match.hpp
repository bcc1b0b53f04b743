// Finds the gradients of dense layers that dense_gradient.hpp fuses.
#pragma once

#include <gpunn/subgraph.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpunn::cuda_tiled {

// The ids of the values that the two ops read and write; none if the pattern does not match.
struct DenseSubgraph {
  std::size_t ops = 0;
  std::array<int32_t, 3> inputs{};   // dy, w, y
  std::array<int32_t, 2> outputs{};  // dx, the bias's gradient
};

DenseSubgraph match_dense(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

}  // namespace gpunn::cuda_tiled
