// Depthwise convolutions, in which each channel of x has its own filters: CONV2D, with or without bias and ReLU, and
// its gradients. Tensors are f32, bf16 or f16, packed or channels-last. The kernels compute in f32 and round the
// results once, as they store them.
//
//   conv:depthwise:general   any filter, stride, dilation and number of filters a channel
//   conv:depthwise:sliding   square filters of 3, 5 and 7 at stride 1 and 2, one a channel: at the speed of memory
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

#include "common/convolution.hpp"
#include "cuda_common/add_op.hpp"
#include "epilogue.cuh"

namespace gpunn::cuda_tiled {

struct DepthwiseProblem {
  backends::ConvolutionPass pass = backends::ConvolutionPass::forward;
  backends::ConvolutionShape shape{};
  bool bias = false;  // of CONV2D_BIAS_ACTIVATION, whose bias is input 2
  bool relu = false;
  int32_t dtype = GPUNN_F32;
  bool channels_last = false;
  int multiprocessors = 1;
  int64_t terms = 1;  // products of an output's sum, at most
};

namespace depthwise {

// The addresses of a pass: x, w and y, or their gradients.
struct Addresses {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* y = nullptr;
  Epilogue epilogue = {};
  void* out = nullptr;  // y, dx or dw
  float* workspace = nullptr;
};

// For each kernel: the reason why it does not serve the problem (empty if it does), the workspace that it needs, and
// its launch.
std::string general_refuses(const DepthwiseProblem& problem);
uint64_t general_workspace_bytes(const DepthwiseProblem& problem);
void run_general(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream);

std::string packed_refuses(const DepthwiseProblem& problem);
uint64_t packed_workspace_bytes(const DepthwiseProblem& problem);
void run_packed(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream);

std::string channels_last_refuses(const DepthwiseProblem& problem);
uint64_t channels_last_workspace_bytes(const DepthwiseProblem& problem);
void run_channels_last(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream);

}  // namespace depthwise
}  // namespace gpunn::cuda_tiled
