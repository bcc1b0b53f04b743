// MATMUL and MATMUL_BIAS_ACTIVATION: the ladder of matrix products, in its order.
#include "gemm/gemm.hpp"

#include <vector>

#include "gemm/choose_gemm.hpp"
#include "gemm/variants.hpp"
#include "gemm/tensor_core.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_tiled {

std::vector<Rung<Gemm>> fp32_gemm_rungs() {
  std::vector<Rung<Gemm>> rungs = {shared_tiles_rung(), register_tiles_rung(), vector_loads_rung(),
                                   async_copies_rung()};
  for (const Rung<Gemm>& rung : warp_tiles_rungs()) rungs.push_back(rung);
  for (const Rung<Gemm>& rung : small_tiles_rungs()) rungs.push_back(rung);
  rungs.push_back(k_major_copies_rung());
  rungs.push_back(sliced_tiles_rung());
  rungs.push_back(stream_k_rung());
  for (const Rung<Gemm>& rung : strassen_rungs()) rungs.push_back(rung);
  return rungs;
}

namespace {

std::vector<Rung<Gemm>> gemm_rungs() {
  // Where the precision allows tensor cores they come first, as the first that serves is what runs untuned.
  std::vector<Rung<Gemm>> rungs = tensor_core_rungs();
  for (const Rung<Gemm>& rung : fp32_gemm_rungs()) rungs.push_back(rung);
  return rungs;
}

}  // namespace

cuda::AlgorithmPtr choose_gemm(TiledDevice& device, const OpDesc& desc) {
  const Gemm problem = gemm_of(desc);
  return choose_rung(device, desc, Ladder<Gemm>{gemm_rungs()}, problem, key_of(problem));
}

void add_gemm_kernels(TiledDevice& device) {
  add_ladder(device, GPUNN_OP_MATMUL, gemm_of, key_of, gemm_rungs());
  add_ladder(device, GPUNN_OP_MATMUL_BIAS_ACTIVATION, gemm_bias_activation_of, key_of, gemm_rungs());
}

}  // namespace gpunn::cuda_tiled
