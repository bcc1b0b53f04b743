// Finds the pooling ops and neighbours that pooling.hpp fuses, and their values.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/convolution.hpp"
#include "pooling/pooling_gradient.hpp"

namespace gpunn::cuda_tiled {

// Ids of values; -1: absent.
struct PoolSubgraph {
  std::size_t ops = 0;  // 0: there is none
  std::string reason;   // why there is none, where something of the kind begins
  bool backward = false;

  // CONV2D_BIAS_ACTIVATION, MAX_POOL2D
  backends::ConvolutionBiasActivation convolution{};
  backends::Pool pool;
  int32_t x = -1, w = -1, bias = -1;
  int32_t pooled = -1;

  // The gradients
  PoolingGradient gradient;
  int32_t dpooled = -1;
  int32_t dx = -1;
  int32_t db = -1;

  int32_t y = -1;  // what is pooled; forward: where others need it
};

PoolSubgraph match_pool(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

}  // namespace gpunn::cuda_tiled
