// A backend with several kernels for RELU of f32: its own choice, "relu:1", "relu:2" for an even number of elements,
// and "relu:3", which is named but refuses. Control.last_kernel tells which one ran.
#include <gpunn/plugin.hpp>

#include <cstring>

#include "control.hpp"

namespace {

using namespace gpunn::plugin;

Control control;

void run_relu(const OpArgs& args) {
  for (int64_t i = 0; i < element_count(args.output(0)); ++i) {
    const float x = args.in<float>(0)[i];
    args.out<float>(0)[i] = x < 0 ? 0 : x;
  }
}

KernelFactory relu(int32_t number, bool even_alone) {
  return {.query =
              [number, even_alone](const OpDesc& desc) {
                const bool odd = element_count(desc.output(0)) % 2 != 0;
                return even_alone && odd ? Support::no("an odd number of elements")
                                         : Support::yes(static_cast<uint64_t>(64 * number));
              },
          .create =
              [number](const OpDesc&) {
                return make_kernel([number](Stream&, const OpArgs& args) {
                  control.last_kernel = number;
                  run_relu(args);
                });
              },
          .name = number == 0 ? "" : "relu:" + std::to_string(number),
          .only_by_name = number > 0};
}

class NamedDevice final : public HostDevice {
 public:
  NamedDevice() {
    add(GPUNN_OP_RELU, relu(0, false));
    add(GPUNN_OP_RELU, relu(1, false));
    add(GPUNN_OP_RELU, relu(2, true));
    // Serves until it is wanted.
    add(GPUNN_OP_RELU, {.query =
                            [](const OpDesc& desc) {
                              return desc.kernel() == "relu:3" && control.fail_status == GPUNN_UNSUPPORTED
                                         ? Support::no("not today")
                                         : Support::yes();
                            },
                        .create = [](const OpDesc&) { return make_kernel([](Stream&, const OpArgs&) {}); },
                        .name = "relu:3",
                        .only_by_name = true});
  }
};

class Named final : public Backend {
 public:
  const char* name() const override { return "named"; }
  const char* version() const override { return "1"; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<NamedDevice>(); }
  const void* extension(const char* name) override {
    return std::strcmp(name, "test.control") == 0 ? &control : nullptr;
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Named>(major, minor);
}
