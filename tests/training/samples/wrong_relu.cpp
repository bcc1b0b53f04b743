// Right until the seventh step, in which one element of each gradient of a ReLU is off.
#include "overlay.hpp"

namespace {

using namespace samples;

class WrongReluDevice final : public gpunn::plugin::HostDevice {
 public:
  static constexpr const char* kName = "wrong_relu";

  WrongReluDevice() {
    // Of all ops it is the look-up of the learning rate that tells where the step counter lies.
    add(GPUNN_OP_TABLE_LOAD, {[](const OpDesc&) { return Support::yes(); },
                              [this](const OpDesc&) {
                                return gpunn::plugin::make_kernel([this](Stream&, const OpArgs& args) {
                                  step_ = args.in<int64_t>(1);
                                  *args.out<float>(0) = args.in<float>(0)[std::min(*step_, args.input(0).dim[0] - 1)];
                                });
                              }});
    add(GPUNN_OP_RELU_BACKWARD, serve<NoAttrs>([this](const NoAttrs&, const OpArgs& args) {
          for (int64_t i = 0; i < element_count(args.output(0)); ++i) {
            args.out<float>(0)[i] = args.in<float>(1)[i] > 0 ? args.in<float>(0)[i] : 0;
          }
          if (step_ != nullptr && *step_ == 6) args.out<float>(0)[5] = 0.25F;
        }));
  }

 private:
  const int64_t* step_ = nullptr;  // done
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<samples::Overlay<WrongReluDevice>>(major, minor);
}
