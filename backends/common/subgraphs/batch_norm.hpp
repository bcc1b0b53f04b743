// Finds batch norm with what surrounds it in a residual network: which ops a backend may fuse, and which values.
//
//   BATCH_NORM, RELU                           the ReLU in the pass that writes y
//   BATCH_NORM, ADD, RELU                      the sum too
//   RELU_BACKWARD, BATCH_NORM_BACKWARD         the mask in the pass that reads dy
//   ADD, RELU_BACKWARD, BATCH_NORM_BACKWARD    the sum of two gradients too
//
//   CONV2D, BATCH_NORM                         alone or with what follows: the statistics where the convolution stores
//                                              its output, for backends that ask for these (match_convolution_norm)
//
// The values between them are then neither written nor read, unless other ops need them.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/normalization.hpp"

namespace gpunn::backends {

// Ids of values; -1: nothing of the kind.
struct NormSubgraph {
  std::size_t ops = 0;  // 0: there is none
  BatchNorm shape;
  bool backward = false;
  int32_t dtype = GPUNN_F32;     // of what is normalised
  std::vector<int32_t> inputs;   // of the batch norm
  std::vector<int32_t> outputs;  // of the batch norm
  int32_t other = -1;            // what is added to y, or to dy
  bool relu = false;             // forward: there is one; backward there always is
  int32_t y = -1;                // forward: what the subgraph ends in; backward: what the ReLU gave
  int32_t dy = -1;               // backward: the gradient of the ReLU's result
  int32_t masked = -1;           // backward: the gradient of what the ReLU reads, where other ops need it
};

// Of the ops from `first` on, at most `limit`.
NormSubgraph match_norm(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

// The same of a convolution whose output is needed later on too, and the batch norm behind it. The inputs and outputs
// are those of the batch norm.
NormSubgraph match_convolution_norm(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

}  // namespace gpunn::backends
