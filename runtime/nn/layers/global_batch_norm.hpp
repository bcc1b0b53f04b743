#pragma once

#include "nn/layers.hpp"

namespace gpunn::nn {

// The inputs of a batch norm for each channel, and the running statistics that it changes.
struct BatchNormValues {
  graph::ValueId x, gamma, beta, mean, variance;
};

// A batch norm in training by the statistics of the rows of all ranks, as one rank with the whole batch would have
// them: PyTorch's SyncBatchNorm. The gradient follows from that of ALL_REDUCE. Mean and variance are formed one after
// the other, each by a sum over the ranks, so that a large mean takes no digits of the variance.
graph::ValueId add_global_batch_norm(const LayerContext& c, const BatchNormValues& values, float epsilon,
                                     float momentum);

}  // namespace gpunn::nn
