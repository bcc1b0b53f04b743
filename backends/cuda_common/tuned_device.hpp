// A GPU with a tuning cache: the algorithms that the autotuner found fastest on it.
#pragma once

#include <gpunn/abi.h>

#include <string>
#include <utility>
#include <vector>

#include "cuda_common/device.hpp"
#include "cuda_common/tuning_cache.hpp"

namespace gpunn::cuda {

class TunedDevice : public CudaDevice {
 public:
  // `versions`: the versions, besides GPU and driver, that decide which algorithm is the fastest.
  TunedDevice(const gpunn_device_options& options, const std::string& backend, const std::vector<std::string>& versions)
      : CudaDevice(options),
        tuning_cache_(platform(backend, versions),
                      [this](int32_t level, const std::string& message) { log(level, message); }) {}

  TuningCache& tuning_cache() { return tuning_cache_; }

 private:
  std::vector<std::string> platform(const std::string& backend, const std::vector<std::string>& versions) const {
    std::vector<std::string> parts = {backend, properties().name, "driver " + driver_version()};
    parts.insert(parts.end(), versions.begin(), versions.end());
    return parts;
  }

  TuningCache tuning_cache_;
};

}  // namespace gpunn::cuda
