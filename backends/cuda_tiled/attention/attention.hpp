// ATTENTION and its gradient in tiles (FlashAttention-2; Dao, 2023). A thread block holds 64 queries and walks over the
// keys, or holds 64 keys and walks over the queries. The scores stay in registers.
#pragma once

#include <cstdint>
#include <string>

#include "common/attention.hpp"
#include "cuda_common/add_op.hpp"

namespace gpunn::cuda_tiled {

struct AttentionProblem {
  backends::Attention shape;
  int32_t dtype = 0;      // GPUNN_F32, GPUNN_BF16 or GPUNN_F16
  int32_t precision = 0;  // GPUNN_PRECISION_: what products of f32 may be rounded to
  bool backward = false;
  int64_t terms = 0;  // of a sum, for the autotuner

  int64_t heads() const { return shape.samples * shape.heads; }
};

// The largest head width. Heads between the widths of two tiles are padded with zeros.
inline constexpr int kMostAttentionWidth = 128;

// Bytes of shared memory that the kernels use.
int attention_shared_bytes_fma(const AttentionProblem& problem);
int attention_shared_bytes_tf32(const AttentionProblem& problem);
int attention_shared_bytes_half(const AttentionProblem& problem);

void attention_fma(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args);
void attention_tf32(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args);
void attention_bf16(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args);
void attention_f16(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args);

}  // namespace gpunn::cuda_tiled
