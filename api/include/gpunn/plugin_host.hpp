// The parts of plugin.hpp for backends that compute on the host: stream, event and device over ordinary memory.
#pragma once

#include <gpunn/plugin.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace gpunn::plugin {

// Work is done when the call returns.
class HostStream final : public Stream {
 public:
  void* native() override { return nullptr; }
  void synchronize() override {}
  void copy(void* destination, const void* source, uint64_t bytes, int32_t) override {
    if (bytes != 0) std::memmove(destination, source, bytes);
  }
  void fill(void* destination, uint8_t value, uint64_t bytes) override {
    if (bytes != 0) std::memset(destination, value, bytes);
  }
};

// An event of a stream that has done its work when a call returns.
class HostEvent final : public Event {
 public:
  void record(Stream&) override { reached_ = std::chrono::steady_clock::now(); }
  void wait(Stream&) override {}
  void synchronize() override {}
  float milliseconds_since(Event& start) override {
    return std::chrono::duration<float, std::milli>(reached_ - static_cast<HostEvent&>(start).reached_).count();
  }

 private:
  std::chrono::steady_clock::time_point reached_;
};

// A device that computes on the host: its memory is the host's, and its streams run each call at once.
class HostDevice : public Device {
 public:
  static constexpr std::size_t kAlignment = 64;

  void info(gpunn_device_info& info) override {
    copy_text(info.name, sizeof(info.name), "host");
    copy_text(info.memory_domain, sizeof(info.memory_domain), "host");
    info.alignment = kAlignment;
    info.compute_units = 1;
  }
  void* allocate(int32_t, uint64_t bytes) override {
    const uint64_t rounded = (std::max<uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    void* data = rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
    if (data == nullptr) throw Failure(GPUNN_OUT_OF_MEMORY, "no host memory for " + std::to_string(bytes) + " bytes");
    return data;
  }
  void release(int32_t, void* data) noexcept override { std::free(data); }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<HostStream>(); }
  std::unique_ptr<Stream> wrap_stream(void*) override { return std::make_unique<HostStream>(); }
  std::unique_ptr<Event> create_event() override { return std::make_unique<HostEvent>(); }
};

}  // namespace gpunn::plugin
