#include "gemm/masked.hpp"

namespace gpunn::cuda_tiled {

std::string refusal_of_mask(const Gemm& problem, int64_t parts) {
  constexpr int64_t kMost = 64;  // one block adds them at the end
  if (problem.shape.transpose_a || problem.shape.transpose_b) return "an operand is transposed";
  return parts > kMost ? "it has too many rows" : std::string();
}

std::vector<MaskedVariant> masked_variants() {
  std::vector<MaskedVariant> variants = masked_wgmma_variants();
  for (const MaskedVariant& variant : masked_warp_tiles_variants()) variants.push_back(variant);
  for (const MaskedVariant& variant : masked_small_tiles_variants()) variants.push_back(variant);
  return variants;
}

}  // namespace gpunn::cuda_tiled
