#include <cmath>

#include "conformance/abi/abi_checks.hpp"
#include "conformance/abi/raw_stream.hpp"

namespace gpunn::conformance {

namespace {

void check_streams(const RawChain& chain) {
  const RawStream first(chain.bottom()), second(chain.bottom()), third(chain.bottom());
  for (const RawStream* stream : {&first, &second, &third}) stream->synchronize();
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
  start.record(device.stream());
  const RawMemory memory(chain.bottom(), GPUNN_MEMORY_DEVICE, 1 << 20);
  chain.bottom().call("fill", [&](gpunn_error* error) {
    return chain.bottom().table().fill(chain.bottom().stream(), memory.data(), 1, 1 << 20, error);
  });
  stop.record(device.stream());
  stop.synchronize();
  const double milliseconds = stop.milliseconds_since(start);
  demand(std::isfinite(milliseconds) && milliseconds >= 0 && milliseconds < 60000,
         "expected the milliseconds of a fill of 1 MiB, found " + std::to_string(milliseconds));
  device.synchronize();
}

void check_wait(const RawChain& chain) {
  const RawDevice& device = chain.top();
  const RawEvent event(device);
  event.record(device.stream());
  event.make_wait(device.stream());
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
