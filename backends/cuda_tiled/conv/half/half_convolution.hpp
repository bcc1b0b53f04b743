// CONV2D, its gradients, CONV2D_BIAS_ACTIVATION and CONV2D_BIAS_ADD_ACTIVATION of channels-last bf16 and f16 images as
// products of half/half_product.hpp. A 1x1 convolution of stride 1 is an ordinary product of its pixels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/convolution.hpp"
#include "half/half_plan.hpp"
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
  HalfStatistics statistics = {};  // with problem.statistics and a tile that can_end_statistics
  HalfGradient gradient = {};      // with problem.gradient and a tile that can_end_gradient
};

// Runs with this tile of kHalfTiles.
void run_half_convolution(const HalfConvolution& problem, int tile_index, const HalfConvolutionArgs& args,
                          cudaStream_t stream);
// How many slabs the sums behind a data gradient have (HalfGradient).
int half_gradient_slabs(const HalfConvolution& problem);
// The workspace in bytes, enough for any tile; nothing if no kernel serves the problem.
std::optional<uint64_t> half_convolution_workspace(const HalfConvolution& problem);
// The tile that the autotuner chooses for the op of `desc`.
int choose_half_tile(TiledDevice& device, const OpDesc& desc, const HalfConvolution& problem);

// The variants conv:half_128x256 and so on, named by their tiles.
std::vector<Variant<HalfConvolution>> half_convolution_variants();

}  // namespace gpunn::cuda_tiled
