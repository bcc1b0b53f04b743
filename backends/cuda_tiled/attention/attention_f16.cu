// attention:mma_sync for f16 tensors.
#include "attention/launch_attention.cuh"

namespace gpunn::cuda_tiled {

void attention_f16(const AttentionProblem& problem, cudaStream_t stream, const backends::OpArgs& args) {
  run_attention<MmaTiles<__half>>(problem, stream, args);
}

}  // namespace gpunn::cuda_tiled
