// A whole backend with one kernel: a matrix product. All else is run by the base, "cpu".
#include <gpunn/plugin.hpp>

#include <memory>

namespace {

using namespace gpunn::plugin;

std::unique_ptr<Kernel> create_matmul(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_matmul_attrs>();
  return make_kernel([attrs](Stream&, const OpArgs& args) {
    const int64_t rows = args.output(0).dim[0];
    const int64_t columns = args.output(0).dim[1];
    const int64_t depth = args.input(0).dim[attrs.transpose_a != 0 ? 0 : 1];
    const auto* a = args.in<float>(0);
    const auto* b = args.in<float>(1);
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        float sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          sum += (attrs.transpose_a != 0 ? a[k * rows + m] : a[m * depth + k]) *
                 (attrs.transpose_b != 0 ? b[n * depth + k] : b[k * columns + n]);
        }
        args.out<float>(0)[m * columns + n] = sum;
      }
    }
  });
}

class ConsumerDevice final : public HostDevice {
 public:
  ConsumerDevice() {
    add(GPUNN_OP_MATMUL, {.query = [](const OpDesc&) { return Support::yes(); }, .create = create_matmul});
  }
};

class ConsumerBackend final : public Backend {
 public:
  const char* name() const override { return "consumer"; }
  const char* version() const override { return "1.0.0"; }
  const char* base() const override { return "cpu"; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<ConsumerDevice>(); }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<ConsumerBackend>(major, minor);
}
