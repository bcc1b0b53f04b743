// The plugin "cpu".
#include <gpunn/collective.hpp>
#include <gpunn/plugin.hpp>
#include <gpunn/subgraph.hpp>

#include <cstring>
#include <memory>

#include "device.hpp"
#include "isa.hpp"
#include "plugin_version.hpp"

namespace gpunn::cpu {
namespace {

class CpuBackend final : public plugin::Backend {
 public:
  const char* name() const override { return "cpu"; }
  const char* version() const override { return backends::kPluginVersion; }
  const char* build() const override {
    return
#if defined(__clang__)
        "clang "
#elif defined(__GNUC__)
        "gcc "
#endif
        __VERSION__
#if defined(GPUNN_X86_VARIANTS)
        "; OpenMP; baseline, avx2, avx512";
#else
        "; OpenMP; baseline";
#endif
  }
  int priority() const override { return 10; }

  // The only thing that can be wrong: GPUNN_CPU_ISA naming what this machine lacks, of which active_isa() throws.
  int probe() override {
    active_isa();
    return 1;
  }

  const void* extension(const char* name) override {
    if (std::strcmp(name, GPUNN_EXTENSION_COLLECTIVE) == 0) return plugin::collective_extension<CpuDevice>();
    return std::strcmp(name, GPUNN_EXTENSION_SUBGRAPH) == 0 ? plugin::subgraph_extension<CpuDevice>() : nullptr;
  }

  std::unique_ptr<plugin::Device> open(const gpunn_device_options& options) override {
    if (options.index != 0) throw plugin::Failure(GPUNN_INVALID_ARGUMENT, "the CPU is one device, of index 0");
    if (options.host_threads < 0) throw plugin::Failure(GPUNN_INVALID_ARGUMENT, "host_threads must not be negative");
    return std::make_unique<CpuDevice>(options);
  }
};

}  // namespace
}  // namespace gpunn::cpu

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t host_major, uint16_t host_minor) {
  return gpunn::plugin::export_backend<gpunn::cpu::CpuBackend>(host_major, host_minor);
}
