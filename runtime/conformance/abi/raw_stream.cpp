#include "conformance/abi/raw_stream.hpp"

#include <gpunn/error.hpp>

namespace gpunn::conformance {

RawStream::RawStream(const RawDevice& device) : device_(device) {
  device.call("stream_create",
              [&](gpunn_error* error) { return device.table().stream_create(device.device(), &stream_, error); });
  if (stream_ == nullptr) throw Error("stream_create said OK but gave no stream");
}

RawStream::RawStream(const RawDevice& device, const RawStream& other) : device_(device) {
  void* const handle = other.native();
  device.call("stream_wrap",
              [&](gpunn_error* error) { return device.table().stream_wrap(device.device(), handle, &stream_, error); });
  if (stream_ == nullptr) throw Error("stream_wrap said OK but gave no stream");
}

RawStream::~RawStream() {
  if (stream_ == nullptr) return;
  // Where a check failed in the middle, work may still be under way.
  plugins::guarded([&](gpunn_error* error) { return device_.table().stream_sync(stream_, error); });
  plugins::guarded_void([&] { device_.table().stream_destroy(stream_); });
}

void* RawStream::native() const {
  void* handle = nullptr;
  device_.call("stream_native",
               [&](gpunn_error* error) { return device_.table().stream_native(stream_, &handle, error); });
  return handle;
}

void RawStream::copy(void* to, const void* from, uint64_t bytes, int32_t direction) const {
  device_.call("copy of " + std::to_string(bytes) + " bytes",
               [&](gpunn_error* error) { return device_.table().copy(stream_, to, from, bytes, direction, error); });
}

void RawStream::copy(const RawMemory& to, const RawMemory& from) const {
  copy(to.data(), from.data(), from.bytes(), GPUNN_DEVICE_TO_DEVICE);
}

void RawStream::fill(const RawMemory& to, uint8_t value) const {
  device_.call("fill of " + std::to_string(to.bytes()) + " bytes",
               [&](gpunn_error* error) { return device_.table().fill(stream_, to.data(), value, to.bytes(), error); });
}

void RawStream::synchronize() const {
  device_.call("stream_sync", [&](gpunn_error* error) { return device_.table().stream_sync(stream_, error); });
}

RawEvent::RawEvent(const RawDevice& device) : device_(device) {
  device.call("event_create",
              [&](gpunn_error* error) { return device.table().event_create(device.device(), &event_, error); });
  if (event_ == nullptr) throw Error("event_create said OK but gave no event");
}

RawEvent::~RawEvent() {
  if (event_ != nullptr) plugins::guarded_void([&] { device_.table().event_destroy(event_); });
}

void RawEvent::record(gpunn_stream* stream) const {
  device_.call("event_record", [&](gpunn_error* error) { return device_.table().event_record(event_, stream, error); });
}

void RawEvent::make_wait(gpunn_stream* stream) const {
  device_.call("event_wait", [&](gpunn_error* error) { return device_.table().event_wait(stream, event_, error); });
}

void RawEvent::synchronize() const {
  device_.call("event_sync", [&](gpunn_error* error) { return device_.table().event_sync(event_, error); });
}

double RawEvent::milliseconds_since(const RawEvent& start) const {
  float milliseconds = -1;
  device_.call("event_elapsed", [&](gpunn_error* error) {
    return device_.table().event_elapsed(start.event_, event_, &milliseconds, error);
  });
  return milliseconds;
}

}  // namespace gpunn::conformance
