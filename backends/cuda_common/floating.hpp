// Registers a kernel template for tensors of each floating dtype. For .cu files.
//
//   template <class T>
//   void run_relu(const int64_t& n, cudaStream_t stream, const OpArgs& args);   // T is float, __nv_bfloat16 or __half
//   add_op(device, GPUNN_OP_RELU, "relu", relu_size, each_floating([](auto x) { return run_relu<decltype(x)>; }),
//          Dtypes::floating);
//
// A kernel reads static_cast<float>(x[i]), computes in float, and writes static_cast<T>(result), rounded to the
// nearest.
#pragma once

#include <gpunn/kernel.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace gpunn::cuda {

// Returns a function that calls the result of of(T()), where T is the type of that input.
template <class Of>
auto each_floating(Of of, std::size_t input = 0) {
  return [input, f32 = of(float()), bf16 = of(__nv_bfloat16()), f16 = of(__half())](
             const auto& plan, cudaStream_t stream, const plugin::OpArgs& args) {
    switch (args.input(input).dtype) {
      case GPUNN_BF16:
        return bf16(plan, stream, args);
      case GPUNN_F16:
        return f16(plan, stream, args);
      default:
        return f32(plan, stream, args);
    }
  };
}

}  // namespace gpunn::cuda
