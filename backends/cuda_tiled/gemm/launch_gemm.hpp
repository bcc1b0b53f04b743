// Host functions that the variants of the GEMM ladder share.
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

#include "cuda_common/add_op.hpp"
#include "gemm/gemm.hpp"
#include "gemm/gemm_arguments.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {

// The kernel arguments of a problem that refusal_of_size accepts.
GemmArguments arguments_of(const Gemm& problem, const backends::OpArgs& args);

// The same for the epilogue of masked.hpp.
GemmArguments masked_arguments_of(const Gemm& problem, const backends::OpArgs& args, unsigned* counters);

// Why no kernel of the ladder serves the problem: they count rows, columns and tiles in 32 bits. Empty if they do.
std::string refusal_of_size(const Gemm& problem);

// Why copies of 16 bytes can't serve it: rows that are not a multiple of four floats. Empty if they can.
std::string refusal_of_quads(const Gemm& problem);
// Whether refusal_of_quads is empty. Allocates no text, so that op_enqueue may call it.
bool has_quads(const Gemm& problem);

// y [size / n, n] = the `count` parts of its sums, added in their order, with the epilogue.
void add_parts(const float* parts, int count, int64_t size, int n, const Epilogue& epilogue, float* y,
               cudaStream_t stream);

// Calls run.operator()<transpose_a, transpose_b>().
template <class Run>
void with_transposes(const Gemm& problem, Run&& run) {
  if (problem.shape.transpose_a) {
    problem.shape.transpose_b ? run.template operator()<true, true>() : run.template operator()<true, false>();
  } else {
    problem.shape.transpose_b ? run.template operator()<false, true>() : run.template operator()<false, false>();
  }
}

}  // namespace gpunn::cuda_tiled
