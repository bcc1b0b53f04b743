// Its stochastic gradient descent knows no momentum.
#include "overlay.hpp"

namespace {

using namespace samples;

class WrongOptimizerDevice final : public gpunn::plugin::HostDevice {
 public:
  static constexpr const char* kName = "wrong_optimizer";

  WrongOptimizerDevice() {
    add(GPUNN_OP_SGD_UPDATE, {[](const OpDesc&) { return Support::yes(); },
                              [](const OpDesc&) {
                                return gpunn::plugin::make_kernel([](Stream&, const OpArgs& args) {
                                  const float rate = *args.in<float>(2);
                                  for (int64_t i = 0; i < element_count(args.output(0)); ++i) {
                                    args.out<float>(0)[i] -= rate * args.in<float>(1)[i];
                                    if (args.outputs() > 1) args.out<float>(1)[i] = args.in<float>(1)[i];
                                  }
                                });
                              }});
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<samples::Overlay<WrongOptimizerDevice>>(major, minor);
}
