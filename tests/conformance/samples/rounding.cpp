// An overlay on cpu with the cpu's own matrix products and convolutions, a little different; the build says how:
// - KIND_OBEDIENT: results are off by a unit in the last place now and then, as another order of summing would make
//   them; where the precision is tf32, factors are rounded to its 11 bits.
// - KIND_ROUNDED: factors are rounded so whatever the precision.
// - KIND_SLANTED: the gradient of filters lacks the last image of the batch.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#include "cpu_library.hpp"

namespace {

using namespace gpunn::plugin;
using samples::CpuLibrary;
using samples::KeptArgs;

enum Kind { KIND_OBEDIENT, KIND_ROUNDED, KIND_SLANTED };
constexpr Kind kKind = SAMPLE_KIND;

// To the nearest number with 10 bits behind the point.
float to_tf32(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7F800000U) == 0x7F800000U) return value;  // infinite, or none
  bits = (bits + 0xFFFU + (bits >> 13U & 1U)) & ~0x1FFFU;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

// A copy of a tensor that may be changed.
class Copy {
 public:
  Copy(HostDevice& device, gpunn_tensor& tensor) : device_(device), count_(element_count(tensor)) {
    const auto bytes = static_cast<uint64_t>(count_) * sizeof(float);
    data_ = static_cast<float*>(device.allocate(GPUNN_MEMORY_DEVICE, bytes));
    if (bytes > 0) std::memcpy(data_, tensor.data, bytes);
    tensor.data = data_;
  }
  ~Copy() { device_.release(GPUNN_MEMORY_DEVICE, data_); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  float* begin() { return data_; }
  float* end() { return data_ + count_; }

 private:
  HostDevice& device_;
  int64_t count_;
  float* data_;
};

class RoundingKernel final : public Kernel {
 public:
  RoundingKernel(HostDevice& device, CpuLibrary& cpu, const OpDesc& desc)
      : device_(device),
        cpu_(cpu),
        op_(desc.op()),
        rounds_(kKind == KIND_ROUNDED || (kKind == KIND_OBEDIENT && desc.precision() == GPUNN_PRECISION_TF32)),
        kernel_(cpu.create(desc)) {}
  ~RoundingKernel() override { cpu_.release(kernel_); }
  RoundingKernel(const RoundingKernel&) = delete;
  RoundingKernel& operator=(const RoundingKernel&) = delete;

  void enqueue(Stream&, const OpArgs& args) override {
    KeptArgs changed(args);
    Copy first(device_, changed.input(0)), second(device_, changed.input(1));
    if (rounds_) {
      for (float& value : first) value = to_tf32(value);
      for (float& value : second) value = to_tf32(value);
    }
    if (kKind == KIND_SLANTED && op_ == GPUNN_OP_CONV2D_BACKWARD_FILTER && args.input(0).dim[0] > 0) {
      const int64_t image = element_count(args.input(0)) / args.input(0).dim[0];
      std::fill(first.end() - image, first.end(), 0.0F);
    }
    cpu_.run(kernel_, changed.get());
    if (kKind != KIND_OBEDIENT || rounds_) return;
    float* const y = args.out<float>(0);
    for (int64_t i = 0; i < element_count(args.output(0)); i += 3) {
      if (y[i] != 0 && std::isfinite(y[i])) y[i] = std::nextafter(y[i], i % 2 == 0 ? 2 * y[i] : 0.0F);
    }
  }

 private:
  HostDevice& device_;
  CpuLibrary& cpu_;
  int32_t op_;
  bool rounds_;
  gpunn_kernel* kernel_;
};

class RoundingDevice final : public HostDevice {
 public:
  explicit RoundingDevice(const gpunn_device_options& options) : cpu_(options) {
    for (const int32_t op :
         {GPUNN_OP_MATMUL, GPUNN_OP_CONV2D, GPUNN_OP_CONV2D_BACKWARD_DATA, GPUNN_OP_CONV2D_BACKWARD_FILTER}) {
      add(op, {[this](const OpDesc& desc) { return cpu_.query(desc); },
               [this](const OpDesc& desc) { return std::make_unique<RoundingKernel>(*this, cpu_, desc); }});
    }
  }

 private:
  CpuLibrary cpu_;
};

class Rounding final : public Backend {
 public:
  const char* name() const override { return SAMPLE_NAME; }
  const char* version() const override { return "1"; }
  const char* base() const override { return "cpu"; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw Failure(GPUNN_INVALID_ARGUMENT, "there is one device, of index 0");
    return std::make_unique<RoundingDevice>(options);
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Rounding>(major, minor);
}
