// MATMUL and MATMUL_BIAS_ACTIVATION: the ladder of matrix products, in its order.
#include "gemm/gemm.hpp"

#include <vector>

#include "gemm/choose_gemm.hpp"
#include "gemm/gemm_variants.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_tiled {

std::vector<Variant<Gemm>> fp32_gemm_variants() {
  std::vector<Variant<Gemm>> variants = {shared_tiles_variant(), register_tiles_variant(), vector_loads_variant(),
                                         async_copies_variant()};
  for (const Variant<Gemm>& variant : warp_tiles_variants()) variants.push_back(variant);
  for (const Variant<Gemm>& variant : small_tiles_variants()) variants.push_back(variant);
  variants.push_back(mn_major_copies_variant());
  variants.push_back(sliced_tiles_variant());
  variants.push_back(stream_k_variant());
  return variants;
}

namespace {

std::vector<Variant<Gemm>> gemm_variants() {
  // Where the precision allows tensor cores they come first, as the first that serves is what runs untuned.
  std::vector<Variant<Gemm>> variants = tensor_core_variants();
  for (const Variant<Gemm>& variant : fp32_gemm_variants()) variants.push_back(variant);
  return variants;
}

}  // namespace

cuda::AlgorithmPtr choose_gemm(TiledDevice& device, const OpDesc& desc) {
  const Gemm problem = gemm_of(desc);
  return choose_variant(device, desc, VariantList<Gemm>{gemm_variants()}, problem, key_of(problem));
}

void add_gemm_kernels(TiledDevice& device) {
  add_variants(device, GPUNN_OP_MATMUL, gemm_of, key_of, gemm_variants());
  add_variants(device, GPUNN_OP_MATMUL_BIAS_ACTIVATION, gemm_bias_activation_of, key_of, gemm_variants());
}

}  // namespace gpunn::cuda_tiled
