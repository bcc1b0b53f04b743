// Collectives between GPUs by NCCL, which is loaded when ranks ask for it.
#pragma once

#include <gpunn/collective.hpp>

#include <memory>

#include "cuda_common/device.hpp"

namespace gpunn::cuda {

// Throws Failure(GPUNN_UNSUPPORTED) on every rank where one of them has no NCCL, or one that is too old.
std::unique_ptr<plugin::Communicator> create_communicator(const CudaDevice& device,
                                                          const plugin::CommunicatorOptions& options);

}  // namespace gpunn::cuda
