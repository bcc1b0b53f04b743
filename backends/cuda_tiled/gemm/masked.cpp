#include "gemm/masked.hpp"

namespace gpunn::cuda_tiled {

std::string refusal_of_mask(const Gemm& problem, int64_t parts) {
  constexpr int64_t kMost = 64;  // one block adds them at the end
  if (problem.shape.transpose_a || problem.shape.transpose_b) return "an operand is transposed";
  return parts > kMost ? "it has too many rows" : std::string();
}

std::vector<MaskedRung> masked_rungs() {
  std::vector<MaskedRung> rungs = masked_wgmma_rungs();
  for (const MaskedRung& rung : masked_warp_tiles_rungs()) rungs.push_back(rung);
  for (const MaskedRung& rung : masked_small_tiles_rungs()) rungs.push_back(rung);
  return rungs;
}

}  // namespace gpunn::cuda_tiled
