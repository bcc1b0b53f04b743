// The device class of this backend: a GPU with the backend's kernels and its tuning results.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

#include "cuda_common/collective.hpp"
#include "cuda_common/peer_memory.hpp"
#include "cuda_common/tuned_device.hpp"

namespace gpunn::cuda_tiled {

class TiledDevice final : public cuda::TunedDevice {
 public:
  explicit TiledDevice(const gpunn_device_options& options);

  std::unique_ptr<plugin::Communicator> create_communicator(const plugin::CommunicatorOptions& options) {
    return cuda::create_communicator(*this, options);
  }

  // Fused subgraphs may add up gradients over these ranks.
  void join_ranks(const plugin::CommunicatorOptions& options);
  void abort_ranks() noexcept;
  void leave_ranks() noexcept;

  // Fused subgraphs: subgraphs/.
  plugin::SubgraphSupport query_subgraph(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);
  std::unique_ptr<plugin::Subgraph> create_subgraph(const plugin::ProgramDesc& desc, std::size_t first,
                                                    std::size_t count);

 private:
  std::unique_ptr<cuda::PeerGroup> peers_;  // nullptr: there is one rank, or no memory that all ranks reach
};

}  // namespace gpunn::cuda_tiled
