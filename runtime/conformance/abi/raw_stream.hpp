#pragma once

#include "conformance/abi/raw_device.hpp"

namespace gpunn::conformance {

// A stream beside the one that a device was opened with.
class RawStream {
 public:
  explicit RawStream(const RawDevice& device);
  // Another plugin's stream, wrapped by this one.
  RawStream(const RawDevice& device, const RawStream& other);
  ~RawStream();
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  const RawDevice& device() const { return device_; }
  gpunn_stream* get() const { return stream_; }
  void* native() const;

  void copy(void* to, const void* from, uint64_t bytes, int32_t direction) const;
  void copy(const RawMemory& to, const RawMemory& from) const;  // all of `from`, on the device
  void fill(const RawMemory& to, uint8_t value) const;
  void synchronize() const;

 private:
  const RawDevice& device_;
  gpunn_stream* stream_ = nullptr;
};

class RawEvent {
 public:
  explicit RawEvent(const RawDevice& device);
  ~RawEvent();
  RawEvent(const RawEvent&) = delete;
  RawEvent& operator=(const RawEvent&) = delete;

  // On a stream of the event's plugin.
  void record(gpunn_stream* stream) const;
  void make_wait(gpunn_stream* stream) const;
  void synchronize() const;
  double milliseconds_since(const RawEvent& start) const;

 private:
  const RawDevice& device_;
  gpunn_event* event_ = nullptr;
};

}  // namespace gpunn::conformance
