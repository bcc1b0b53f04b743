// A plugin with one right kernel, plain loops that sum in f32: without a base, or over SAMPLE_BASE as SAMPLE_NAME.
#include "loops.hpp"

#ifndef SAMPLE_NAME
#define SAMPLE_NAME "honest"
#define SAMPLE_BASE nullptr
#endif

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
  const char* name() const override { return SAMPLE_NAME; }
  const char* version() const override { return "1"; }
  const char* base() const override { return SAMPLE_BASE; }
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
