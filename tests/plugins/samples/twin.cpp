// One of two plugins by two authors who both called their class MyBackend, and set no visibility.
#include <gpunn/plugin.hpp>

class MyBackend final : public gpunn::plugin::Backend {
 public:
  const char* name() const override { return SAMPLE_NAME; }
  const char* version() const override { return SAMPLE_NAME; }
  int probe() override { return SAMPLE_DEVICES; }
  std::unique_ptr<gpunn::plugin::Device> open(const gpunn_device_options&) override {
    return std::make_unique<gpunn::plugin::HostDevice>();
  }
};

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<MyBackend>(major, minor);
}
