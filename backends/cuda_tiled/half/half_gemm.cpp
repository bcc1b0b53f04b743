// MATMUL and MATMUL_BIAS_ACTIVATION of bf16 and f16 tensors.
#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "architecture.hpp"
#include "cuda_common/divide_up.hpp"
#include "gemm/gemm.hpp"
#include "half/half_plan.hpp"
#include "half/half_variants.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::Matmul;

constexpr int64_t kMostSize = int64_t{1} << 30;

struct HalfGemm {
  Gemm gemm;
  int32_t dtype = GPUNN_BF16;
  int64_t terms = 0;  // of a sum, for the autotuner
};

HalfGemm half_gemm_with(const OpDesc& desc, const Gemm& gemm) {
  const int32_t dtype = desc.input(0).dtype;
  backends::require(ops::is_half(dtype), "is for tensors of bf16 and f16");
  return {.gemm = gemm, .dtype = dtype, .terms = gemm.shape.k};
}

HalfGemm half_gemm_of(const OpDesc& desc) { return half_gemm_with(desc, gemm_of(desc)); }
HalfGemm half_gemm_bias_activation_of(const OpDesc& desc) {
  return half_gemm_with(desc, gemm_bias_activation_of(desc));
}

std::string half_key_of(const HalfGemm& problem) {
  return key_of(problem.gemm) + " " + ops::dtype_text(problem.dtype) + " tensors";
}

HalfPlan plan_of(const HalfGemm& problem, int tile) {
  const Matmul& shape = problem.gemm.shape;
  HalfPlan plan{.product = {},
                .element = problem.dtype == GPUNN_BF16 ? HalfElement::kBf16 : HalfElement::kF16,
                .major_a = shape.transpose_a ? Major::kMN : Major::kK,
                .major_b = shape.transpose_b ? Major::kK : Major::kMN,
                .a = {.lines = shape.transpose_a ? shape.k : shape.m, .line = shape.transpose_a ? shape.m : shape.k},
                .b = {.lines = shape.transpose_b ? shape.n : shape.k, .line = shape.transpose_b ? shape.k : shape.n},
                .tile = tile};
  HalfProduct& product = plan.product;
  HalfPhase& phase = product.phase[0];
  phase.rows = static_cast<int>(shape.m);
  phase.blocks = static_cast<int>(cuda::divide_up(shape.k, kHalfBlockK));
  phase.places.row_pitch = shape.n;
  product.channel_blocks = Divider(phase.blocks);
  product.columns = static_cast<int>(shape.n);
  product.vectors = shape.n % 8 == 0;
  product.epilogue.relu = shape.relu;
  plan_tiles(plan, multiprocessors());
  return plan;
}

std::string refuses(const HalfGemm& problem, int tile) {
  const Matmul& shape = problem.gemm.shape;
  if (std::min({shape.m, shape.n, shape.k}) < 1) return "a matrix is empty";
  if (std::max({shape.m, shape.n, shape.k}) > kMostSize) return "a size is too large";
  if (std::string refusal = half_refusal_of_gpu(); !refusal.empty()) return refusal;
  const HalfPlan plan = plan_of(problem, tile);
  return is_countable(plan) ? std::string() : "a matrix is too large";
}

uint64_t workspace(const HalfGemm& problem, int tile) { return plan_of(problem, tile).workspace_bytes(); }

void run(const HalfGemm& problem, int tile, cudaStream_t stream, const OpArgs& args) {
  HalfPlan plan = plan_of(problem, tile);
  auto* const room = args.workspace<uint8_t>();
  const void* const a = place_lines(plan.a, args.in<void>(0), room, stream);
  const void* const b = place_lines(plan.b, args.in<void>(1), room + plan.a.copy_bytes(), stream);
  const auto map = [](const HalfLines& lines, const void* data, Major major, int size) {
    return half_tensor_map({.data = data, .inner = lines.line, .taps = 1, .outer = lines.lines, .pitch = lines.pitch()},
                           major == Major::kK ? size : kHalfBlockK);
  };
  plan.product.a[0] = map(plan.a, a, plan.major_a, plan.tile_size().rows_fetched());
  plan.product.b = map(plan.b, b, plan.major_b, plan.tile_size().columns_fetched());
  run_half_product(plan,
                   {.y = args.out<void>(0), .bias = problem.gemm.bias ? args.in<float>(2) : nullptr, .workspace = room},
                   multiprocessors(), stream);
}

// The variants gemm:half_128x256 and so on, named by their tiles.
std::vector<Variant<HalfGemm>> half_gemm_variants() {
  return half_variants<HalfGemm, refuses, workspace, run>("gemm:half_");
}

}  // namespace

void add_half_gemm_kernels(TiledDevice& device) {
  add_variants(device, GPUNN_OP_MATMUL, half_gemm_of, half_key_of, half_gemm_variants(), Dtypes::floating);
  add_variants(device, GPUNN_OP_MATMUL_BIAS_ACTIVATION, half_gemm_bias_activation_of, half_key_of, half_gemm_variants(),
               Dtypes::floating);
}

}  // namespace gpunn::cuda_tiled
