// Selects the template instance of a kernel for the types and sizes of a problem.
#pragma once

#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "conv/depthwise/depthwise.hpp"

namespace gpunn::cuda_tiled::depthwise {

template <int value>
using Constant = std::integral_constant<int, value>;

// Calls call(T()), where T is the type of the problem's tensors.
template <class Call>
void with_type(const DepthwiseProblem& problem, const Call& call) {
  switch (problem.dtype) {
    case GPUNN_BF16:
      return call(__nv_bfloat16());
    case GPUNN_F16:
      return call(__half());
    default:
      return call(float());
  }
}

// Calls call(T(), taps, stride) for a filter that the sliding-window kernels serve.
template <class Call>
void with_filter(const DepthwiseProblem& problem, const Call& call) {
  with_type(problem, [&](auto type) {
    const auto with_stride = [&](auto taps) {
      if (problem.shape.rows.stride == 1) return call(type, taps, Constant<1>());
      call(type, taps, Constant<2>());
    };
    if (problem.shape.rows.taps == 3) return with_stride(Constant<3>());
    if (problem.shape.rows.taps == 5) return with_stride(Constant<5>());
    with_stride(Constant<7>());
  });
}

}  // namespace gpunn::cuda_tiled::depthwise
