// A plugin without a base and with one right kernel: plain loops that sum in f32.
#include "loops.hpp"

namespace {

using namespace samples;

class HonestDevice final : public gpunn::plugin::HostDevice {
 public:
  HonestDevice() {
    add(GPUNN_OP_MATMUL, serve<gpunn_matmul_attrs>(
                             [](const gpunn_matmul_attrs& attrs, const OpArgs& args) { multiply(attrs, args, 0); }));
  }
};

class Honest final : public gpunn::plugin::Backend {
 public:
  const char* name() const override { return "honest"; }
  const char* version() const override { return "1"; }
  int probe() override { return 1; }
  std::unique_ptr<gpunn::plugin::Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw gpunn::plugin::Failure(GPUNN_INVALID_ARGUMENT, "there is one device");
    return std::make_unique<HonestDevice>();
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Honest>(major, minor);
}
