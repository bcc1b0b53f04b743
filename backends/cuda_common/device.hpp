// A GPU as the ABI's device: memory, streams and events. Backends derive it and register their kernels.
#pragma once

#include <gpunn/plugin.hpp>

#include <memory>
#include <string>

#include <cuda_runtime_api.h>

namespace gpunn::cuda {

// How many GPUs there are. Throws Failure(GPUNN_NO_DEVICE) saying why there is none: no driver, one that is too old for
// the toolkit that this was built with, none visible, or none for which this library holds machine code or PTX.
int probe_devices();

// "nvcc 13.0, sm_90a": what the plugins of this build are made of.
const char* build_text();

class CudaDevice : public plugin::Device {
 public:
  // What every allocation of CUDA is aligned to, and enough for 16-byte accesses and the bulk tensor copy engine.
  static constexpr uint64_t kAlignment = 256;

  explicit CudaDevice(const gpunn_device_options& options);

  int index() const { return index_; }
  const cudaDeviceProp& properties() const { return properties_; }
  void log(int32_t level, const std::string& message) const;

  void info(gpunn_device_info& info) override;
  void* allocate(int32_t kind, uint64_t bytes) override;
  void release(int32_t kind, void* data) noexcept override;
  std::unique_ptr<plugin::Stream> create_stream() override;
  std::unique_ptr<plugin::Stream> wrap_stream(void* native) override;
  std::unique_ptr<plugin::Event> create_event() override;

 private:
  int index_;
  cudaDeviceProp properties_{};
  gpunn_log_fn log_;
  void* log_context_;
};

// "580.159.04", the version of the kernel's driver; "?" where the system does not tell.
std::string driver_version();

}  // namespace gpunn::cuda
