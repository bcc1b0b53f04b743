// The plugin "cpu": the machine's processors as one device whose memory is the host's.
#include <gpunn/plugin.hpp>

#include <fstream>
#include <string>

#include <unistd.h>

#include "isa.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

// The value of the first line of /proc/cpuinfo or /proc/meminfo that begins with `key`, without its colon and blanks.
std::string proc_value(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t colon = line.find(':');
    const std::size_t begin = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return {};
}

// "16384 kB", or 0 where the system does not tell.
uint64_t memory_bytes(const std::string& key) {
  return std::strtoull(proc_value("/proc/meminfo", key).c_str(), nullptr, 10) * 1024;
}

class CpuDevice final : public plugin::HostDevice {
 public:
  explicit CpuDevice(const gpunn_device_options& options) {
    // Before the families register, which may size their workspaces by it.
    set_thread_count(options.host_threads);
    add_kernels(*this);
  }

  void info(gpunn_device_info& info) override {
    HostDevice::info(info);
    const std::string model = proc_value("/proc/cpuinfo", "model name");
    plugin::copy_text(info.name, sizeof(info.name), model.empty() ? "CPU" : model);
    plugin::copy_text(info.driver, sizeof(info.driver), isa_name(active_isa()));
    info.compute_units = thread_count();
    info.tensor_alignment = 1;  // vectors are loaded and stored at any address
    info.total_bytes = memory_bytes("MemTotal");
    info.free_bytes = memory_bytes("MemAvailable");
  }
};

class CpuBackend final : public plugin::Backend {
 public:
  const char* name() const override { return "cpu"; }
  const char* version() const override { return GPUNN_PLUGIN_VERSION; }
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
