// The device class of this backend: a GPU with the backend's kernels and its tuning results.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstddef>
#include <memory>

#include "cuda_common/collective.hpp"
#include "cuda_common/tuned_device.hpp"

namespace gpunn::cuda_tiled {

class TiledDevice final : public cuda::TunedDevice {
 public:
  explicit TiledDevice(const gpunn_device_options& options);

  std::unique_ptr<plugin::Communicator> create_communicator(const plugin::CommunicatorOptions& options) {
    return cuda::create_communicator(*this, options);
  }

  // Fused subgraphs: subgraphs/.
  plugin::SubgraphSupport query_subgraph(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);
  std::unique_ptr<plugin::Subgraph> create_subgraph(const plugin::ProgramDesc& desc, std::size_t first,
                                                    std::size_t count);
};

}  // namespace gpunn::cuda_tiled
