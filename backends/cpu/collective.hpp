// Sums and copies between ranks of one machine, through memory that they share.
#pragma once

#include <gpunn/collective.hpp>

#include <memory>

namespace gpunn::cpu {

std::unique_ptr<plugin::Communicator> create_communicator(const plugin::CommunicatorOptions& options);

}  // namespace gpunn::cpu
