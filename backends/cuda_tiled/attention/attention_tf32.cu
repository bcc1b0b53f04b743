// attention:mma_sync for f32 tensors, whose factors are rounded to TF32.
#include "attention/launch_attention.cuh"

namespace gpunn::cuda_tiled {

int attention_shared_bytes_tf32(const AttentionProblem& problem) {
  return attention_shared_bytes<MmaTiles<Tf32>>(problem);
}

void attention_tf32(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args) {
  run_attention<MmaTiles<Tf32>>(problem, stream, args);
}

}  // namespace gpunn::cuda_tiled
