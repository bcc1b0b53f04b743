// Streams, events and captured graphs of CUDA behind the ABI's.
#pragma once

#include <gpunn/plugin.hpp>

#include <memory>

#include <cuda_runtime_api.h>

namespace gpunn::cuda {

// A stream of one device, made here or wrapped.
class CudaStream final : public plugin::Stream {
 public:
  explicit CudaStream(int device);
  CudaStream(int device, cudaStream_t native) : device_(device), stream_(native), owned_(false) {}
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t handle() const { return stream_; }
  void* native() override { return stream_; }
  void synchronize() override;
  void copy(void* destination, const void* source, uint64_t bytes, int32_t direction) override;
  void fill(void* destination, uint8_t value, uint64_t bytes) override;
  void begin_capture() override;
  std::unique_ptr<plugin::CapturedGraph> end_capture() override;

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
  bool owned_ = true;
};

// The native stream behind a stream that the host handed to this plugin.
inline cudaStream_t native(plugin::Stream& stream) { return static_cast<CudaStream&>(stream).handle(); }

class CudaEvent final : public plugin::Event {
 public:
  explicit CudaEvent(int device);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void record(plugin::Stream& stream) override;
  void wait(plugin::Stream& stream) override;
  void synchronize() override;
  float milliseconds_since(plugin::Event& start) override;

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace gpunn::cuda
