#include "device.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

#include "isa.hpp"
#include "kernels.hpp"
#include "subgraphs/fused_norm.hpp"
#include "threads/parallel.hpp"

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

}  // namespace

CpuDevice::CpuDevice(const gpunn_device_options& options) {
  // Before the families register, which may size their workspaces by it.
  set_thread_count(options.host_threads);
  threads_ = thread_count();
  add_kernels(*this);
}

void CpuDevice::info(gpunn_device_info& info) {
  HostDevice::info(info);
  const std::string model = proc_value("/proc/cpuinfo", "model name");
  plugin::copy_text(info.name, sizeof(info.name), model.empty() ? "CPU" : model);
  plugin::copy_text(info.driver, sizeof(info.driver), isa_name(active_isa()));
  info.compute_units = thread_count();
  info.tensor_alignment = 1;  // vectors are loaded and stored at any address
  info.total_bytes = memory_bytes("MemTotal");
  info.free_bytes = memory_bytes("MemAvailable");
}

plugin::SubgraphSupport CpuDevice::query_subgraph(const plugin::ProgramDesc& desc, std::size_t first,
                                                  std::size_t limit) {
  return query_norm(desc, first, limit, threads_);
}

std::unique_ptr<plugin::Subgraph> CpuDevice::create_subgraph(const plugin::ProgramDesc& desc, std::size_t first,
                                                             std::size_t count) {
  return create_norm(desc, first, count, threads_);
}

}  // namespace gpunn::cpu
