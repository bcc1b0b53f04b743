// A plugin that takes it for granted that there is a device: where CUDA_VISIBLE_DEVICES hides them all, its probe reads
// the first of none, and device_open hands out one that is not there.
#include <csignal>
#include <cstdlib>
#include <vector>

#include "loops.hpp"

namespace {

using namespace samples;

std::vector<int> devices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && *visible == '\0' ? std::vector<int>{} : std::vector<int>{1};
}

class GroundlessDevice final : public gpunn::plugin::HostDevice {
 public:
  GroundlessDevice() {
    add(GPUNN_OP_MATMUL, serve<gpunn_matmul_attrs>(
                             [](const gpunn_matmul_attrs& attrs, const OpArgs& args) { multiply(attrs, args, 0); }));
  }
};

class Groundless final : public gpunn::plugin::Backend {
 public:
  const char* name() const override { return "groundless"; }
  const char* version() const override { return "1"; }
  int probe() override {
    const std::vector<int> found = devices();
    if (found.empty()) {
      // What reading the first of none comes to, without asking a sanitizer's leave.
      std::signal(SIGSEGV, SIG_DFL);
      std::raise(SIGSEGV);
    }
    return found.front();
  }
  std::unique_ptr<gpunn::plugin::Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw gpunn::plugin::Failure(GPUNN_INVALID_ARGUMENT, "there is one device, of index 0");
    return std::make_unique<GroundlessDevice>();
  }
};

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Groundless>(major, minor);
}
