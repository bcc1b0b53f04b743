// MATMUL and MATMUL_BIAS_ACTIVATION of bf16 tensors on AMX or AVX512-BF16: a product is a 1x1 convolution of images of
// one pixel, of which a transposed b is the filter; with b as it is, the gradient of such a one's data; with a
// transposed, the gradient of its filter.
#include <gpunn/kernel.hpp>

#include <algorithm>
#include <memory>
#include <string>

#include "add_op.hpp"
#include "common/matmul.hpp"
#include "half/half_filter_product.hpp"
#include "half/half_image_product.hpp"
#include "kernels.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kFewestFactors = 16;
constexpr double kLargestProductWorkspace = 64.0 * 1024 * 1024 * 1024;

struct HalfMatmulPlan {
  std::shared_ptr<const HalfImageProduct> rows;
  std::shared_ptr<const HalfFilterProduct> transposed;
  bool bias = false;
  bool relu = false;
  uint64_t workspace_bytes = 0;
  int score = 1;
};

ConvolutionShape pixels_of(int64_t batch, int64_t inputs, int64_t outputs) {
  constexpr backends::ConvolutionAxis kOne{.inputs = 1, .outputs = 1, .taps = 1, .stride = 1, .pad = 0, .dilation = 1};
  return {.batch = batch, .groups = 1, .group_inputs = inputs, .group_outputs = outputs, .rows = kOne, .columns = kOne};
}

HalfMatmulPlan plan_half_matmul(const OpDesc& desc, int threads, const HalfTileKernels& kernels, int score) {
  require(desc.input(0).dtype == GPUNN_BF16, "this kernel is for bf16 tensors");
  HalfMatmulPlan plan;
  plan.score = score;
  plan.bias = desc.op() == GPUNN_OP_MATMUL_BIAS_ACTIVATION;
  const backends::Matmul shape = plan.bias ? backends::matmul_bias_activation_of(desc) : backends::matmul_of(desc);
  plan.relu = shape.relu;
  require(std::min({shape.m, shape.n, shape.k}) >= kFewestFactors, "few rows, columns or terms leave the tiles empty");
  require(!shape.transpose_a || (!shape.transpose_b && !plan.bias), "a is not transposed with b, or with a bias");
  double bytes = 0;
  if (shape.transpose_a) {
    plan.transposed = std::make_shared<const HalfFilterProduct>(pixels_of(shape.k, shape.n, shape.m), threads, kernels);
    bytes = plan.transposed->workspace_bytes();
  } else {
    const bool forward = shape.transpose_b;
    plan.rows = std::make_shared<const HalfImageProduct>(
        forward ? pixels_of(shape.m, shape.k, shape.n) : pixels_of(shape.m, shape.n, shape.k),
        forward ? ConvolutionPass::forward : ConvolutionPass::backward_data, threads, kernels);
    bytes = plan.rows->workspace_bytes();
  }
  require(bytes < kLargestProductWorkspace, "the product would need more than 64 GiB of workspace");
  plan.workspace_bytes = static_cast<uint64_t>(bytes) + 64;
  return plan;
}

void run_half_matmul(const HalfMatmulPlan& plan, const OpArgs& args) {
  const auto *a = args.in<BFloat16>(0), *b = args.in<BFloat16>(1);
  auto* y = args.out<BFloat16>(0);
  auto* workspace = args.workspace<char>();
  if (plan.transposed != nullptr) {
    plan.transposed->run(a, b, y, workspace);
  } else {
    plan.rows->run(a, b, plan.bias ? args.in<float>(2) : nullptr, plan.relu, y, workspace);
  }
}

}  // namespace

void add_half_matmul_kernels(plugin::Device& device) {
  const int threads = thread_count();
  int score = 1;
  for (const HalfTileKernels* kernels : usable_half_tiles()) {
    for (const int32_t op : {GPUNN_OP_MATMUL, GPUNN_OP_MATMUL_BIAS_ACTIVATION}) {
      serve(
          device, op,
          [threads, kernels, score](const OpDesc& desc) { return plan_half_matmul(desc, threads, *kernels, score); },
          run_half_matmul, Dtypes::floating, Layouts::packed, std::string("gemm:") + kernels->name);
    }
    ++score;
  }
}

}  // namespace gpunn::cpu
