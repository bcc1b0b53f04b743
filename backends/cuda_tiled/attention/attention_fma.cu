// attention:fma, in strict fp32.
#include "attention/launch_attention.cuh"

namespace gpunn::cuda_tiled {

int attention_shared_bytes_fma(const AttentionProblem& problem) { return attention_shared_bytes<FmaTiles>(problem); }

void attention_fma(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args) {
  run_attention<FmaTiles>(problem, stream, args);
}

}  // namespace gpunn::cuda_tiled
