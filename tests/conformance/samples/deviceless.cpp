// A plugin that finds nothing to run on.
#include <gpunn/plugin.hpp>

namespace {

class Deviceless final : public gpunn::plugin::Backend {
 public:
  const char* name() const override { return "deviceless"; }
  const char* version() const override { return "1"; }
  int probe() override { throw gpunn::plugin::Failure(GPUNN_NO_DEVICE, "the drawer of devices is empty"); }
  std::unique_ptr<gpunn::plugin::Device> open(const gpunn_device_options&) override {
    throw gpunn::plugin::Failure(GPUNN_NO_DEVICE, "the drawer of devices is empty");
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Deviceless>(major, minor);
}
