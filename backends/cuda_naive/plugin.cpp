// The plugin "cuda_naive": every op as the plainest correct CUDA kernel, to be read and to be checked against.
#include <gpunn/plugin.hpp>

#include "cuda_common/device.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

class NaiveDevice final : public cuda::CudaDevice {
 public:
  explicit NaiveDevice(const gpunn_device_options& options) : CudaDevice(options) {
    add_arithmetic_kernels(*this);
    add_elementwise_kernels(*this);
    add_activation_kernels(*this);
    add_copy_kernels(*this);
    add_bias_kernels(*this);
    add_matmul_kernels(*this);
    add_convolution_kernels(*this);
    add_pooling_kernels(*this);
    add_upsampling_kernels(*this);
    add_shape_kernels(*this);
    add_softmax_kernels(*this);
    add_normalization_kernels(*this);
    add_layer_norm_kernels(*this);
    add_local_response_norm_kernels(*this);
    add_loss_kernels(*this);
    add_pointwise_loss_kernels(*this);
    add_hinge_loss_kernels(*this);
    add_reduction_kernels(*this);
    add_optimizer_kernels(*this);
    add_regularization_kernels(*this);
    add_random_kernels(*this);
    add_batch_kernels(*this);
    add_augmentation_kernels(*this);
    add_counter_kernels(*this);
    add_metrics_kernels(*this);
  }
};

class NaiveBackend final : public plugin::Backend {
 public:
  const char* name() const override { return "cuda_naive"; }
  const char* version() const override { return GPUNN_PLUGIN_VERSION; }
  const char* build() const override { return cuda::build_text(); }
  int priority() const override { return 20; }
  bool can_capture() const override { return true; }
  bool concurrent_streams() const override { return true; }
  int probe() override { return cuda::probe_devices(); }
  std::unique_ptr<plugin::Device> open(const gpunn_device_options& options) override {
    return std::make_unique<NaiveDevice>(options);
  }
};

}  // namespace
}  // namespace gpunn::cuda_naive

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor) {
  return gpunn::plugin::export_backend<gpunn::cuda_naive::NaiveBackend>(host_major, host_minor);
}
