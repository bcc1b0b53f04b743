// Finds pooling with its neighbours: which ops a backend may fuse, and which values.
//
//   CONV2D_BIAS_ACTIVATION, MAX_POOL2D
//   MAX_POOL2D_BACKWARD or AVG_POOL2D_BACKWARD, then RELU_BACKWARD or BIAS_ACTIVATION_BACKWARD
//
// The gradient between pooling and ReLU is then neither written nor read.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/convolution.hpp"
#include "common/pooling.hpp"

namespace gpunn::backends {

// Ids of values; -1: nothing of the kind.
struct PoolSubgraph {
  std::size_t ops = 0;  // 0: there is none
  std::string reason;   // why there is none, where something of the kind begins
  bool backward = false;
  Pool pool;
  bool mean = false;  // of AVG_POOL2D

  // Forward
  ConvolutionBiasActivation convolution{};
  int32_t x = -1, w = -1, bias = -1;

  // The gradients
  int32_t dpooled = -1;
  int32_t dx = -1;
  int32_t db = -1;

  int32_t pooled = -1;  // backward: of maxima
  int32_t y = -1;       // what is pooled; forward: where others need it
};

PoolSubgraph match_pool(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

}  // namespace gpunn::backends
