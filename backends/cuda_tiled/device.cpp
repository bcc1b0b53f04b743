#include "device.hpp"

#include "cuda_common/check.hpp"
#include "kernels.hpp"
#include "program/dense_runs.hpp"
#include "program/norm_runs.hpp"
#include "program/step_program.hpp"

namespace gpunn::cuda_tiled {

TiledDevice::TiledDevice(const gpunn_device_options& options)
    : TunedDevice(options, "cuda_tiled", {GPUNN_PLUGIN_VERSION}) {
  add_elementwise_kernels(*this);
  add_bias_kernels(*this);
  add_gemm_kernels(*this);
  add_convolution_kernels(*this);
  add_pooling_kernels(*this);
  add_shape_kernels(*this);
  add_softmax_kernels(*this);
  add_normalization_kernels(*this);
  add_optimizer_kernels(*this);
}

plugin::ProgramClaim TiledDevice::claim(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit) {
  cuda::check(cudaSetDevice(index()), "choosing the device");
  plugin::ProgramClaim step = claim_step(desc, first, limit);
  if (step.ops > 0) return step;
  plugin::ProgramClaim norm = claim_norm(desc, first, limit);
  if (norm.ops > 0) return norm;
  plugin::ProgramClaim dense = claim_dense(*this, desc, first, limit);
  return dense.ops > 0 || step.reason.empty() ? dense : step;
}

std::unique_ptr<plugin::Program> TiledDevice::create_program(const plugin::ProgramDesc& desc, std::size_t first,
                                                             std::size_t count) {
  cuda::check(cudaSetDevice(index()), "choosing the device");
  if (claim_step(desc, first, count).ops == count) return create_step(desc, first, count);
  if (claim_norm(desc, first, count).ops == count) return create_norm(desc, first, count);
  return create_dense(*this, desc, first, count);
}

}  // namespace gpunn::cuda_tiled
