#include "feed/residency.hpp"

#include "fields/standardise.hpp"

namespace gpunn::training {

namespace {

uint64_t bytes_of(const Split& split) {
  uint64_t bytes = fields::device_type(split.samples).bytes();
  for (const auto& [name, values] : split.fields) bytes += fields::device_type(values.type).bytes();
  return bytes;
}

// The other half is for activations, parameters and other users of the device.
constexpr uint64_t kShareOfFree = 2;

}  // namespace

uint64_t resident_bytes(const Dataset& dataset) { return bytes_of(dataset.train) + bytes_of(dataset.test); }

Residency choose_residency(Residency wanted, uint64_t resident_bytes, const gpunn_device_info& device) {
  if (wanted != Residency::automatic) return wanted;
  const bool known = device.free_bytes > 0;
  return known && resident_bytes > device.free_bytes / kShareOfFree ? Residency::stream : Residency::device;
}

std::string name_of(Residency residency) { return residency == Residency::stream ? "stream" : "device"; }

}  // namespace gpunn::training
