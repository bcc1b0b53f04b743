// Builds the convolution ops as operation graphs of cuDNN's graph API.
#pragma once

#include <vector>

#include "common/convolution.hpp"
#include "descriptor.hpp"

namespace gpunn::cudnn {

// The target of a plan: the GPU of a handle or, without a GPU, the properties of one
// (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). One of the two is NULL.
struct Target {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;
};

// The ops that follow a forward convolution in the same graph: a bias, the sum with another tensor, ReLU.
enum class Epilogue { none, bias, bias_relu, bias_add, bias_add_relu };

// The ids of the tensors in a graph.
enum TensorId : int64_t { kImages = 1, kFilters = 2, kResults = 3, kBias = 4, kResidual = 5 };

// The memory layout of the tensors.
struct Storage {
  int32_t dtype = GPUNN_F32;
  bool channels_last = false;
};

// The images x, filters w and results y in this layout, for every pass. The pass determines which of them is computed.
struct OperationGraph {
  std::vector<Descriptor> parts;  // what the graph is made of
  Descriptor graph;
};

OperationGraph convolution_graph(const Target& target, backends::ConvolutionPass pass,
                                 const backends::ConvolutionShape& shape, Epilogue epilogue,
                                 const Storage& storage = {});

}  // namespace gpunn::cudnn
