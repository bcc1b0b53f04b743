// A backend on the host that serves no op. Its ranks have collectives that never meet: each takes its own data for that
// of all, and says that it waits for no other. With SAMPLE_SPENT they heed abort, but their devices are unusable from
// then on.
#include <gpunn/collective.hpp>
#include <gpunn/plugin.hpp>
#include <gpunn/plugin_host.hpp>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>

#ifndef SAMPLE_SPENT
#define SAMPLE_NAME "alone"
#define SAMPLE_SPENT false
#endif

namespace {

using namespace gpunn::plugin;

std::size_t bytes_of(int32_t dtype) { return dtype == GPUNN_F64 ? 8 : dtype == GPUNN_F32 ? 4 : 2; }

class AloneDevice final : public HostDevice {
 public:
  void* allocate(int32_t kind, uint64_t bytes) override {
    throw_if_spent();
    return HostDevice::allocate(kind, bytes);
  }
  std::unique_ptr<Communicator> create_communicator(const CommunicatorOptions& options);

  void spend() noexcept { spent_ = SAMPLE_SPENT; }
  void throw_if_spent() const {
    if (spent_) throw Failure(GPUNN_INTERNAL, "an illegal memory access was encountered");
  }

 private:
  std::atomic<bool> spent_{false};
};

class AloneCommunicator final : public Communicator {
 public:
  AloneCommunicator(AloneDevice& device, const CommunicatorOptions& options)
      : device_(device), world_(options.world()) {}
  CollectiveSupport query(const gpunn_collective_desc&) override {
    return CollectiveSupport::yes(GPUNN_OP_DETERMINISTIC);
  }
  void enqueue(Stream&, const gpunn_collective_desc& desc, const void* in, void* out) override {
    device_.throw_if_spent();
    const std::size_t bytes = desc.count * bytes_of(desc.dtype);
    const int times = desc.kind == GPUNN_ALL_GATHER ? world_ : 1;
    for (int i = 0; i < times; ++i) {
      std::memmove(static_cast<std::byte*>(out) + static_cast<std::size_t>(i) * bytes, in, bytes);
    }
  }
  void abort() noexcept override { device_.spend(); }

 private:
  AloneDevice& device_;
  int world_;
};

std::unique_ptr<Communicator> AloneDevice::create_communicator(const CommunicatorOptions& options) {
  return std::make_unique<AloneCommunicator>(*this, options);
}

class AloneBackend final : public Backend {
 public:
  const char* name() const override { return SAMPLE_NAME; }
  const char* version() const override { return "1"; }
  int probe() override { return 1; }
  const void* extension(const char* name) override {
    return std::strcmp(name, GPUNN_EXTENSION_COLLECTIVE) == 0 ? collective_extension<AloneDevice>() : nullptr;
  }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<AloneDevice>(); }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor) {
  return export_backend<AloneBackend>(host_major, host_minor);
}
