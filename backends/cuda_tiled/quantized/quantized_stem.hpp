// The plan of quantized:stem (quantized_stem.cu).
#pragma once

#include <optional>

#include <cuda_runtime_api.h>

#include "common/convolution.hpp"
#include "quantized/quantized_convolution.hpp"
#include "quantized/quantized_patch.hpp"

namespace gpunn::cuda_tiled {

struct QuantizedStemPlan {
  QuantizedPatch patch;
  int steps = 1;  // of 8 taps
  int shared_bytes = 0;
};

// Returns nothing if the kernel does not serve the shape: it is for one group of up to four channels.
std::optional<QuantizedStemPlan> quantized_stem_plan(const backends::ConvolutionShape& shape);

// `arguments` without `padding` and `first`, which the kernel computes.
void launch_quantized_stem(const QuantizedStemPlan& plan, const QuantizedArguments& arguments, int multiprocessors,
                           cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
