// The cpu backend's kernels on a device with as many bytes of memory as GPUNN_TEST_MEMORY says, all of them free at
// first.
#include <gpunn/plugin.hpp>

#include <cstdlib>
#include <map>

#include "kernels.hpp"

namespace {

using namespace gpunn::plugin;

class CrampedDevice final : public HostDevice {
 public:
  CrampedDevice() { gpunn::cpu::add_kernels(*this); }
  void info(gpunn_device_info& info) override {
    HostDevice::info(info);
    copy_text(info.name, sizeof(info.name), "cramped");
    info.total_bytes = limit();
    info.free_bytes = limit() - used_;
  }
  void* allocate(int32_t kind, uint64_t bytes) override {
    if (used_ + bytes > limit()) throw Failure(GPUNN_OUT_OF_MEMORY, "the cramped device is full");
    void* data = HostDevice::allocate(kind, bytes);
    used_ += bytes;
    sizes_[data] = bytes;
    return data;
  }
  void release(int32_t kind, void* data) noexcept override {
    const auto found = sizes_.find(data);
    if (found != sizes_.end()) {
      used_ -= found->second;
      sizes_.erase(found);
    }
    HostDevice::release(kind, data);
  }

 private:
  static uint64_t limit() {
    const char* const given = std::getenv("GPUNN_TEST_MEMORY");
    return given == nullptr ? uint64_t{1} << 40 : std::strtoull(given, nullptr, 10);
  }
  uint64_t used_ = 0;
  std::map<void*, uint64_t> sizes_;
};

class Cramped final : public Backend {
 public:
  const char* name() const override { return "cramped"; }
  const char* version() const override { return "1"; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<CrampedDevice>(); }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return export_backend<Cramped>(major, minor);
}
