// The other way to run a subgraph of a convolution in half precision and a batch norm, forward or backward: the
// convolution by itself, then the fused batch norm behind it. Which way is faster depends on the shape, so the
// autotuner tries both.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "conv/half/half_convolution.hpp"
#include "device.hpp"

namespace gpunn::cuda_tiled {

struct ConvolutionSubgraph {
  std::size_t first = 0;  // the convolution
  std::size_t count = 0;
  HalfConvolution convolution;   // with statistics or a gradient behind it
  uint64_t norm_bytes = 0;       // of the workspace, for the ops behind it
  uint64_t workspace_bytes = 0;  // of any way
};

// In bytes, for running it apart.
uint64_t apart_workspace(const plugin::ProgramDesc& desc, const ConvolutionSubgraph& subgraph);

// The fastest way: with one of the kernels that do what is behind the convolution, as fused(kernel) makes it, or apart,
// with what norm() makes of the ops behind it.
std::unique_ptr<plugin::Subgraph> choose_way(TiledDevice& device, const plugin::ProgramDesc& desc,
                                             const ConvolutionSubgraph& subgraph,
                                             const std::function<std::unique_ptr<plugin::Subgraph>(int kernel)>& fused,
                                             const std::function<std::unique_ptr<plugin::Subgraph>()>& norm);

}  // namespace gpunn::cuda_tiled
