// The machine's processors as one device whose memory is the host's.
#pragma once

#include <gpunn/plugin_host.hpp>
#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

#include "collective.hpp"

namespace gpunn::cpu {

class CpuDevice final : public plugin::HostDevice {
 public:
  explicit CpuDevice(const gpunn_device_options& options);

  void info(gpunn_device_info& info) override;

  // Fused subgraphs: subgraphs/.
  plugin::SubgraphSupport query_subgraph(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);
  std::unique_ptr<plugin::Subgraph> create_subgraph(const plugin::ProgramDesc& desc, std::size_t first,
                                                    std::size_t count);

  std::unique_ptr<plugin::Communicator> create_communicator(const plugin::CommunicatorOptions& options) {
    return cpu::create_communicator(options);
  }

 private:
  int threads_;  // that subgraphs size their workspaces by
};

}  // namespace gpunn::cpu
