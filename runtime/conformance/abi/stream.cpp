#include <cmath>

#include "conformance/abi/abi_checks.hpp"

namespace gpunn::conformance {

namespace {

// Events of the plugin on its stream (an overlay's wraps its base's).
class RawEvent {
 public:
  explicit RawEvent(const RawDevice& device) : device_(device) {
    device.call("event_create",
                [&](gpunn_error* error) { return device.table().event_create(device.device(), &event_, error); });
    demand(event_ != nullptr, "event_create said OK but gave no event");
  }
  ~RawEvent() {
    if (event_ != nullptr) plugins::guarded_void([&] { device_.table().event_destroy(event_); });
  }
  RawEvent(const RawEvent&) = delete;
  RawEvent& operator=(const RawEvent&) = delete;
  gpunn_event* get() const { return event_; }

  void record() const {
    device_.call("event_record",
                 [&](gpunn_error* error) { return device_.table().event_record(event_, device_.stream(), error); });
  }
  void synchronize() const {
    device_.call("event_sync", [&](gpunn_error* error) { return device_.table().event_sync(event_, error); });
  }

 private:
  const RawDevice& device_;
  gpunn_event* event_ = nullptr;
};

void check_streams(const RawChain& chain) {
  const RawDevice& device = chain.bottom();
  gpunn_stream* streams[3] = {};
  for (gpunn_stream*& stream : streams) {
    device.call("stream_create",
                [&](gpunn_error* error) { return device.table().stream_create(device.device(), &stream, error); });
    demand(stream != nullptr, "stream_create said OK but gave no stream");
  }
  for (gpunn_stream* stream : streams) {
    device.call("stream_sync", [&](gpunn_error* error) { return device.table().stream_sync(stream, error); });
    device.table().stream_destroy(stream);
  }
}

void check_wrap(const RawChain& chain) {
  const RawDevice& device = chain.top();
  const RawDevice& owner = chain.bottom();
  void* native = nullptr;
  owner.call("stream_native",
             [&](gpunn_error* error) { return owner.table().stream_native(owner.stream(), &native, error); });
  gpunn_stream* wrapper = nullptr;
  device.call("stream_wrap",
              [&](gpunn_error* error) { return device.table().stream_wrap(device.device(), native, &wrapper, error); });
  demand(wrapper != nullptr, "stream_wrap said OK but gave no stream");
  device.call("stream_sync", [&](gpunn_error* error) { return device.table().stream_sync(wrapper, error); });
  void* wrapped = nullptr;
  device.call("stream_native",
              [&](gpunn_error* error) { return device.table().stream_native(wrapper, &wrapped, error); });
  const bool same = wrapped == native;
  device.table().stream_destroy(wrapper);
  owner.synchronize();  // the native stream is alive
  demand(same, "stream_native of a wrapper is not the native stream that it wraps");
}

void check_events(const RawChain& chain) {
  const RawDevice& device = chain.top();
  const RawEvent start(device), stop(device);
  start.record();
  const RawMemory memory(chain.bottom(), GPUNN_MEMORY_DEVICE, 1 << 20);
  chain.bottom().call("fill", [&](gpunn_error* error) {
    return chain.bottom().table().fill(chain.bottom().stream(), memory.data(), 1, 1 << 20, error);
  });
  stop.record();
  stop.synchronize();
  float milliseconds = -1;
  device.call("event_elapsed", [&](gpunn_error* error) {
    return device.table().event_elapsed(start.get(), stop.get(), &milliseconds, error);
  });
  demand(std::isfinite(milliseconds) && milliseconds >= 0 && milliseconds < 60000,
         "expected the milliseconds of a fill of 1 MiB, found " + std::to_string(milliseconds));
  device.synchronize();
}

void check_wait(const RawChain& chain) {
  const RawDevice& device = chain.top();
  const RawEvent event(device);
  event.record();
  device.call("event_wait",
              [&](gpunn_error* error) { return device.table().event_wait(device.stream(), event.get(), error); });
  device.synchronize();
}

}  // namespace

std::vector<AbiCheck> stream_checks() {
  return {{"stream_create", "three streams, synchronised and destroyed", check_streams},
          {"stream_wrap", "wraps and leaves the native stream alone", check_wrap},
          {"event_elapsed", "time around a fill", check_events},
          {"event_wait", "a stream waits for its own event", check_wait}};
}

}  // namespace gpunn::conformance
