#include <algorithm>

#include "architecture.hpp"
#include "cuda_common/divide_up.hpp"
#include "gemm/gemm_variants.hpp"
#include "gemm/mma_sync/mma_sync.hpp"
#include "gemm/wgmma/wgmma.hpp"

namespace gpunn::cuda_tiled {
namespace {

template <WgmmaKernel kKernel>
std::string refuses(const Gemm& problem) {
  return wgmma_refuses(kKernel, problem);
}

template <WgmmaKernel kKernel>
void run(const Gemm& problem, cudaStream_t stream, const OpArgs& args) {
  (problem.precision == GPUNN_PRECISION_BF16 ? wgmma_bf16 : wgmma_tf32)(kKernel, problem, stream, args);
}

template <WgmmaKernel kKernel>
uint64_t workspace(const Gemm& problem) {
  return problem.precision == GPUNN_PRECISION_BF16 ? wgmma_bf16_workspace(problem)
                                                   : wgmma_tf32_workspace(kKernel, problem);
}

template <WgmmaKernel kKernel>
Variant<Gemm> wgmma_variant(const char* name) {
  return {.name = name, .refuses = refuses<kKernel>, .workspace_bytes = workspace<kKernel>, .run = run<kKernel>};
}

}  // namespace

std::string wgmma_refuses(WgmmaKernel kernel, const Gemm& problem) {
  constexpr int kHopper = 90;
  constexpr int64_t kMost = int64_t{1} << 30U;
  constexpr int64_t kMostTransposed = int64_t{1} << 20U;  // numbers; beyond, the split variants are faster
  const backends::Matmul& shape = problem.shape;
  if (problem.precision != GPUNN_PRECISION_TF32 && problem.precision != GPUNN_PRECISION_BF16) {
    return "the precision is neither TF32 nor BF16";
  }
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0) return "a matrix is empty";
  if (shape.m > kMost || shape.n > kMost || shape.k > kMost) return "a size is too large";
  if (compute_capability() != kHopper) return "the GPU is not of compute capability 9.0";
  if (!wgmma_compiled()) return "not compiled for sm_90a";
  const auto tiles = [&](int64_t rows, int64_t columns) {
    return (cuda::divide_up(shape.m, rows)) * (cuda::divide_up(shape.n, columns));
  };
  if (kernel == WgmmaKernel::kSplit && tiles(128, 128) > 2 * multiprocessors()) return "tiles fill the GPU anyway";
  if (kernel == WgmmaKernel::kSplitLow && tiles(128, 128) > multiprocessors())
    return "larger tiles fill the GPU anyway";
  if (kernel == WgmmaKernel::kSmall) {
    if (tiles(64, 128) > multiprocessors()) return "larger tiles fill the GPU anyway";
    if (shape.k > 2048 && 2 * tiles(64, 32) <= multiprocessors()) return "only parts of K fill the GPU";
    // In TF32 an operand of which K does not run along lines is transposed before.
    const int64_t transposed = std::max(shape.transpose_a ? shape.m : 0, shape.transpose_b ? 0 : shape.n);
    if (problem.precision == GPUNN_PRECISION_TF32 && transposed * shape.k > kMostTransposed) {
      return "an operand is too large to be transposed before";
    }
  }
  return {};
}

std::vector<Variant<Gemm>> tensor_core_variants() {
  return {
      wgmma_variant<WgmmaKernel::kSmall>("gemm:wgmma_small"),
      {.name = "gemm:wgmma_rounding",
       .refuses = wgmma_rounding_refuses,
       .workspace_bytes = wgmma_rounding_workspace,
       .run = wgmma_rounding},
      wgmma_variant<WgmmaKernel::kSplit>("gemm:wgmma_split"),
      wgmma_variant<WgmmaKernel::kSplitLow>("gemm:wgmma_split_low"),
      wgmma_variant<WgmmaKernel::kPersistent>("gemm:wgmma_persistent"),
      {.name = "gemm:mma_sync", .refuses = mma_sync_refuses, .workspace_bytes = nullptr, .run = mma_sync_big},
      {.name = "gemm:mma_sync_split",
       .refuses = mma_sync_refuses,
       .workspace_bytes = mma_sync_small_workspace,
       .run = mma_sync_small},
  };
}

}  // namespace gpunn::cuda_tiled
