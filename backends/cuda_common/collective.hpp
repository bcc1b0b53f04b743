// Collectives between GPUs by NCCL, and sums through their memory (peer_sums.hpp) where it is missing or will not do.
// The NCCL library is loaded when ranks first ask for it.
#pragma once

#include <gpunn/collective.hpp>

#include <memory>

#include "cuda_common/device.hpp"

namespace gpunn::cuda {

// Throws Failure(GPUNN_UNSUPPORTED) on every rank if there is no memory that all reach, and NCCL is missing or too old
// on any of them.
std::unique_ptr<plugin::Communicator> create_communicator(const CudaDevice& device,
                                                          const plugin::CommunicatorOptions& options);

}  // namespace gpunn::cuda
