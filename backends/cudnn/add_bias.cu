#include "add_bias.hpp"
#include "cuda_common/launch.hpp"

namespace gpunn::cudnn {
namespace {

using cuda::launch;
using cuda::thread_each;
using cuda::thread_index;

__global__ void bias_and_activation(float* y, const float* bias, const float* residual, int64_t n, int64_t channels,
                                    int64_t size, bool relu) {
  const int64_t i = thread_index();
  if (i >= n) return;
  float sum = y[i] + bias[i / size % channels];
  if (residual != nullptr) sum += residual[i];
  y[i] = relu && sum < 0.0F ? 0.0F : sum;
}

}  // namespace

void add_bias(float* y, const float* bias, const float* residual, int64_t rows, int64_t channels, int64_t size,
              bool relu, cudaStream_t stream) {
  const int64_t n = rows * channels * size;
  launch(bias_and_activation, thread_each(n), stream, y, bias, residual, n, channels, size, relu);
}

}  // namespace gpunn::cudnn
