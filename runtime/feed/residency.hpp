#pragma once

#include <gpunn/abi.h>
#include <gpunn/data.hpp>
#include <gpunn/data_config.hpp>

#include <cstdint>
#include <string>

namespace gpunn::training {

// Bytes of a data set that is resident on the device: both splits' samples and labels.
uint64_t resident_bytes(const Dataset& dataset);

// Residency::device or Residency::stream, as requested. `automatic` chooses the device if the data set takes at most
// half of its free memory, or if the device does not tell how much that is.
Residency choose_residency(Residency wanted, uint64_t resident_bytes, const gpunn_device_info& device);

// "device" or "stream".
std::string name_of(Residency residency);

}  // namespace gpunn::training
