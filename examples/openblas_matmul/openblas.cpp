// A backend with one kernel: the matrix product, by OpenBLAS. The base, "cpu", runs all other ops, on the same memory.
#include <gpunn/plugin.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <cblas.h>

namespace {

using namespace gpunn::plugin;

// y[m,n] = op(a) op(b), with k terms in a sum.
struct Product {
  CBLAS_TRANSPOSE transpose_a, transpose_b;
  int64_t m, n, k;
};

Product product_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_matmul_attrs>();
  const bool ta = attrs.transpose_a != 0, tb = attrs.transpose_b != 0;
  return {.transpose_a = ta ? CblasTrans : CblasNoTrans,
          .transpose_b = tb ? CblasTrans : CblasNoTrans,
          .m = desc.input(0).dim[ta ? 1 : 0],
          .n = desc.input(1).dim[tb ? 0 : 1],
          .k = desc.input(0).dim[ta ? 0 : 1]};
}

// Whether the op is served at these sizes. That tensors and attributes fit the op, gpunn has checked. What is refused
// goes to the base, so only say yes to what the kernel below gets right.
Support query_matmul(const OpDesc& desc) {
  // BLAS counts in blasint, as a rule of 32 bits; gpunn in 64.
  constexpr int64_t most = std::numeric_limits<blasint>::max();
  const Product p = product_of(desc);
  if (std::max({p.m, p.n, p.k}) > most) return Support::no("sizes up to " + std::to_string(most) + " only");
  Support support = Support::yes();
  // Not GPUNN_OP_DETERMINISTIC: on several threads OpenBLAS does not promise the same bits each time. An experiment
  // with `deterministic: true` therefore gets the base's product.
  support.flags = 0;
  return support;
}

std::unique_ptr<Kernel> create_matmul(const OpDesc& desc) {
  return make_kernel([p = product_of(desc)](Stream&, const OpArgs& args) {
    if (p.m == 0 || p.n == 0) return;
    if (p.k == 0) {  // sums of nothing
      std::fill_n(args.out<float>(0), p.m * p.n, 0.0F);
      return;
    }
    const auto size = [](int64_t value) { return static_cast<blasint>(value); };
    // Row-major, as gpunn's tensors are; a leading dimension is the length of a row as it lies in memory.
    cblas_sgemm(CblasRowMajor, p.transpose_a, p.transpose_b, size(p.m), size(p.n), size(p.k), 1.0F, args.in<float>(0),
                size(p.transpose_a == CblasTrans ? p.m : p.k), args.in<float>(1),
                size(p.transpose_b == CblasTrans ? p.k : p.n), 0.0F, args.out<float>(0), size(p.n));
  });
}

// HostDevice brings memory, streams and events of the host; what is left to add is the kernel.
class OpenBlasDevice final : public HostDevice {
 public:
  explicit OpenBlasDevice(const gpunn_device_options& options) {
    if (options.host_threads > 0) openblas_set_num_threads(options.host_threads);  // 0: as OpenBLAS likes
    add(GPUNN_OP_MATMUL, {.query = query_matmul, .create = create_matmul});
  }
};

class OpenBlasBackend final : public Backend {
 public:
  const char* name() const override { return "openblas"; }
  const char* version() const override { return "1.0.0"; }
  const char* build() const override { return openblas_get_config(); }
  const char* base() const override { return "cpu"; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw Failure(GPUNN_INVALID_ARGUMENT, "the host is one device, of index 0");
    return std::make_unique<OpenBlasDevice>(options);
  }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<OpenBlasBackend>(major, minor);
}
