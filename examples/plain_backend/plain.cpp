// A backend of 44 plain loops on one core, without a base. 38 of them are all that LeNet, ResNet-18 and an MLP need to
// be trained; with TRANSPOSE, EXPAND, CONCAT, BATCH_MATMUL, ERF and DROPOUT a vision transformer trains, too.
// Everything else that they are written in - biases, activations, softmax, norms, the optimizer - gpunn composes of
// these.
#include "plain.hpp"

#include <memory>

namespace plain {

using namespace gpunn;

namespace {

class PlainDevice final : public plugin::HostDevice {
 public:
  PlainDevice() {
    add_arithmetic(*this);
    add_images(*this);
    add_batches(*this);
    add_training(*this);
  }
};

class PlainBackend final : public plugin::Backend {
 public:
  const char* name() const override { return "plain"; }
  const char* version() const override { return "1.0"; }
  int probe() override { return 1; }
  std::unique_ptr<plugin::Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw plugin::Failure(GPUNN_INVALID_ARGUMENT, "there is one device, of index 0");
    return std::make_unique<PlainDevice>();
  }
};

}  // namespace
}  // namespace plain

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor) {
  return gpunn::plugin::export_backend<plain::PlainBackend>(host_major, host_minor);
}
