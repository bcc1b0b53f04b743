// Finds batch norm with its neighbouring ops in a residual network, and says which ops a backend may fuse.
//
//   BATCH_NORM, RELU                           the pass that writes y applies the ReLU
//   BATCH_NORM, ADD, RELU                      the pass that writes y also adds
//   RELU_BACKWARD, BATCH_NORM_BACKWARD         the pass that reads dy applies the mask
//   ADD, RELU_BACKWARD, BATCH_NORM_BACKWARD    the pass that reads dy also adds the two gradients
//
//   CONV2D, BATCH_NORM                         alone or with the ops that follow: the convolution computes
//                                              the statistics as it stores its output, in backends
//                                              that support it (match_convolution_norm)
//   CONV2D_BACKWARD_DATA, RELU_BACKWARD, BATCH_NORM_BACKWARD
//   CONV2D_BACKWARD_DATA, ADD, RELU_BACKWARD, BATCH_NORM_BACKWARD
//                                              the convolution adds, applies the mask and makes the sums as it stores
//                                              its output (match_gradient_norm)
//
// The intermediate values are then neither written nor read, unless other ops need them.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/normalization.hpp"

namespace gpunn::backends {

// Ids of values; -1: absent.
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

// Matches at most `limit` ops from `first` on.
NormSubgraph match_norm(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

// The same for a convolution followed by batch norm, if later ops need the convolution's output too. The inputs and
// outputs are those of the batch norm.
NormSubgraph match_convolution_norm(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

// The gradient of a batch norm behind the data gradient of a convolution, which only these ops need: it is `dy`, and
// has no memory. `other` is what is added to it.
NormSubgraph match_gradient_norm(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

}  // namespace gpunn::backends
