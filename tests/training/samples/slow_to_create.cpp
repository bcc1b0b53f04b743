// An overlay on cpu whose kernels take long to make, as where a backend times several before it chooses one: a second
// for each ReLU.
#include <chrono>
#include <thread>

#include "overlay.hpp"

namespace {

using namespace samples;

class SlowToCreateDevice final : public gpunn::plugin::HostDevice {
 public:
  static constexpr const char* kName = "slow_to_create";

  SlowToCreateDevice() {
    add(GPUNN_OP_RELU, {[](const OpDesc&) { return Support::yes(); },
                        [](const OpDesc&) {
                          std::this_thread::sleep_for(std::chrono::seconds(1));
                          return gpunn::plugin::make_kernel([](Stream&, const OpArgs& args) {
                            for (int64_t i = 0; i < element_count(args.output(0)); ++i) {
                              args.out<float>(0)[i] = std::max(args.in<float>(0)[i], 0.0F);
                            }
                          });
                        }});
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<samples::Overlay<SlowToCreateDevice>>(major, minor);
}
