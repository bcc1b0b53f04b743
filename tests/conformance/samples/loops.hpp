// Plain kernels for the sample plugins, and what they share.
#pragma once

#include <gpunn/plugin.hpp>

#include <cstdint>
#include <functional>
#include <utility>

namespace samples {

using gpunn::plugin::element_count;
using gpunn::plugin::KernelFactory;
using gpunn::plugin::OpArgs;
using gpunn::plugin::OpDesc;
using gpunn::plugin::Stream;
using gpunn::plugin::Support;

// Serves f32 tensors of any shape with a function of the attributes and the arguments.
template <class Attrs, class F>
KernelFactory serve(F run, uint64_t workspace_bytes = 0) {
  return {[workspace_bytes](const OpDesc& desc) {
            for (std::size_t i = 0; i < desc.inputs(); ++i) {
              if (desc.input(i).dtype != GPUNN_F32) return Support::no("f32 alone");
            }
            return Support::yes(workspace_bytes);
          },
          [run](const OpDesc& desc) {
            return gpunn::plugin::make_kernel(
                [run, attrs = desc.attrs<Attrs>()](Stream&, const OpArgs& args) { run(attrs, args); });
          }};
}

struct NoAttrs {
  uint32_t struct_size;
};

// y = op(a) op(b) over the first `inner - dropped` terms of each sum.
inline void multiply(const gpunn_matmul_attrs& attrs, const OpArgs& args, int64_t dropped) {
  const bool ta = attrs.transpose_a != 0, tb = attrs.transpose_b != 0;
  const int64_t rows = args.output(0).dim[0], columns = args.output(0).dim[1];
  const int64_t inner = args.input(0).dim[ta ? 0 : 1];
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < columns; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < inner - dropped; ++k) {
        sum += args.in<float>(0)[ta ? k * rows + m : m * inner + k] *
               args.in<float>(1)[tb ? n * inner + k : k * columns + n];
      }
      args.out<float>(0)[m * columns + n] = sum;
    }
  }
}

}  // namespace samples
