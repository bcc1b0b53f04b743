// An overlay on cpu with several kernel variants for MATMUL. The named ones are wrong: "gemm:2" at odd sizes, "gemm:3"
// wherever it serves. The overlay's own choice is right, so that only a test of each variant fails.
#include "loops.hpp"

namespace {

using namespace samples;

KernelFactory variant(const char* name, int64_t (*dropped)(const OpDesc&), bool multiples_of_four = false) {
  return {.query =
              [multiples_of_four](const OpDesc& desc) {
                if (desc.input(0).dtype != GPUNN_F32) return Support::no("f32 alone");
                const gpunn_tensor& y = desc.output(0);
                const bool fits = y.dim[0] % 4 == 0 && y.dim[1] % 4 == 0;
                return multiples_of_four && !fits ? Support::no("needs multiples of 4") : Support::yes();
              },
          .create =
              [dropped](const OpDesc& desc) {
                return gpunn::plugin::make_kernel([attrs = desc.attrs<gpunn_matmul_attrs>(), terms = dropped(desc)](
                                                      Stream&, const OpArgs& args) { multiply(attrs, args, terms); });
              },
          .name = name,
          .only_by_name = *name != '\0'};
}

class LadderDevice final : public gpunn::plugin::HostDevice {
 public:
  LadderDevice() {
    const auto right = [](const OpDesc&) { return int64_t{0}; };
    add(GPUNN_OP_MATMUL, variant("", right));
    add(GPUNN_OP_MATMUL, variant("gemm:1", right));
    add(GPUNN_OP_MATMUL, variant("gemm:2", [](const OpDesc& desc) { return desc.output(0).dim[1] % 2; }));
    add(GPUNN_OP_MATMUL, variant(
                             "gemm:3", [](const OpDesc&) { return int64_t{1}; }, true));
  }
};

class Ladder final : public gpunn::plugin::Backend {
 public:
  const char* name() const override { return "ladder"; }
  const char* version() const override { return "1"; }
  const char* base() const override { return "cpu"; }
  int probe() override { return 1; }
  std::unique_ptr<gpunn::plugin::Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw gpunn::plugin::Failure(GPUNN_INVALID_ARGUMENT, "there is one device");
    return std::make_unique<LadderDevice>();
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Ladder>(major, minor);
}
