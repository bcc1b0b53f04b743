// CONV2D, its gradients, CONV2D_BIAS_ACTIVATION and CONV2D_BIAS_ADD_ACTIVATION of channels-last bf16 and f16 images as
// products of half/half_product.hpp. A 1x1 convolution of stride 1 is an ordinary product of its pixels.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/convolution.hpp"
#include "half/half_plan.hpp"
#include "normalization/slab_rows.cuh"
#include "variants.hpp"

namespace gpunn::cuda_tiled {

struct HalfConvolution {
  ConvolutionPass pass = ConvolutionPass::forward;
  ConvolutionShape shape{};
  int32_t dtype = GPUNN_BF16;
  bool bias = false;
  bool residual = false;
  bool relu = false;
  bool statistics = false;  // HalfStatistics are behind it
  bool gradient = false;    // a HalfGradient is behind it: K is not split
  int64_t terms = 0;        // of a sum, for the autotuner

  // Kernels of packed images convert these images; these read them directly.
  int score() const { return 2; }
};

// Throw Refusal if the op is no forward convolution, or no data gradient, of this kind.
HalfConvolution half_forward_problem(const OpDesc& desc);
HalfConvolution half_backward_data_problem(const OpDesc& desc);

struct HalfConvolutionArgs {
  std::array<const void*, 2> inputs{};
  const float* bias = nullptr;
  const void* residual = nullptr;
  void* output = nullptr;
  void* workspace = nullptr;
  HalfStatistics statistics = {};  // with problem.statistics
  HalfGradient gradient = {};      // with problem.gradient
};

// Identifies the problem in the tuning cache.
std::string half_key_of(const HalfConvolution& problem);

// Those of the op itself.
HalfConvolutionArgs half_arguments(const HalfConvolution& problem, const OpArgs& args);

// A kernel with HalfStatistics or HalfGradient behind it: a tile of kHalfTiles, or the kernel of patches.
inline constexpr int kPatchKernel = static_cast<int>(kHalfTiles.size());

// The kernels that serve the problem, its statistics or sums included.
std::vector<int> half_kernels(const HalfConvolution& problem);
std::string half_kernel_name(int kernel);
// The one of them that the autotuner chooses for the op of `desc`.
int choose_half_kernel(TiledDevice& device, const OpDesc& desc, const HalfConvolution& problem);
// In bytes: the largest workspace of these kernels.
uint64_t half_kernels_workspace(const HalfConvolution& problem, const std::vector<int>& kernels);
void run_half_kernel(const HalfConvolution& problem, int kernel, const HalfConvolutionArgs& args, cudaStream_t stream);

// The slabs that a kernel leaves.
struct HalfSlabs {
  int count = 0;
  SlabRows rows;
};
HalfSlabs half_slabs(const HalfConvolution& problem, int kernel);

// The variants conv:half_128x256 and so on, named by their tiles.
std::vector<Variant<HalfConvolution>> half_convolution_variants();

}  // namespace gpunn::cuda_tiled
