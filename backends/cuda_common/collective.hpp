// Collectives between GPUs by NCCL. The NCCL library is loaded when ranks first ask for it.
#pragma once

#include <gpunn/collective.hpp>

#include <memory>

#include "cuda_common/device.hpp"

namespace gpunn::cuda {

// Throws Failure(GPUNN_UNSUPPORTED) on every rank if NCCL is missing or too old on any of them.
std::unique_ptr<plugin::Communicator> create_communicator(const CudaDevice& device,
                                                          const plugin::CommunicatorOptions& options);

}  // namespace gpunn::cuda
