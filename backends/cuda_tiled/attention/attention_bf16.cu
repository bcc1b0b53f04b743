// attention:mma_sync for bf16 tensors.
#include "attention/launch_attention.cuh"

namespace gpunn::cuda_tiled {

int attention_shared_bytes_half(const AttentionProblem& problem) {
  return attention_shared_bytes<MmaTiles<__nv_bfloat16>>(problem);
}

void attention_bf16(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args) {
  run_attention<MmaTiles<__nv_bfloat16>>(problem, stream, args);
}

}  // namespace gpunn::cuda_tiled
