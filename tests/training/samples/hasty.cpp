// Right in every op by itself, wrong in one go: an op takes what another gives only if the host was there in between.
// Stands for a kernel that does not wait for its input. The host reads memory between two ops that are run one by one,
// which this plugin, on top of cpu, cannot see; so it goes by the calls: of each two the second is too early.
#include "overlay.hpp"

namespace {

using namespace samples;

class HastyDevice final : public gpunn::plugin::HostDevice {
 public:
  static constexpr const char* kName = "hasty";

  HastyDevice() {
    add(GPUNN_OP_TABLE_LOAD, {[](const OpDesc&) { return Support::yes(); },
                              [](const OpDesc&) {
                                return gpunn::plugin::make_kernel([calls = 0](Stream&, const OpArgs& args) mutable {
                                  const int64_t last = args.input(0).dim[0] - 1;
                                  const bool early = ++calls % 2 == 0;
                                  *args.out<float>(0) =
                                      early ? 0 : args.in<float>(0)[std::min(*args.in<int64_t>(1), last)];
                                });
                              }});
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<samples::Overlay<HastyDevice>>(major, minor);
}
