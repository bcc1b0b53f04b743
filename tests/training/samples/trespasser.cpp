// Right, but its RELU writes behind its output.
#include "overlay.hpp"

namespace {

using namespace samples;

class TrespasserDevice final : public gpunn::plugin::HostDevice {
 public:
  static constexpr const char* kName = "trespasser";

  TrespasserDevice() {
    add(GPUNN_OP_RELU, serve<NoAttrs>([](const NoAttrs&, const OpArgs& args) {
          constexpr int64_t kTooMany = 64;  // as many as reach across what aligns the next tensor
          const int64_t count = element_count(args.output(0));
          for (int64_t i = 0; i < count; ++i) args.out<float>(0)[i] = std::max(args.in<float>(0)[i], 0.0F);
          for (int64_t i = 0; i < kTooMany; ++i) args.out<float>(0)[count + i] = 1;
        }));
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<samples::Overlay<TrespasserDevice>>(major, minor);
}
