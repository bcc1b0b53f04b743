// What is put on one stream is done in that order, whichever plugin of the chain puts it there.
#include <algorithm>
#include <cstring>

#include "conformance/abi/abi_checks.hpp"
#include "conformance/stream/ordering.hpp"

namespace gpunn::conformance {

namespace {

constexpr std::size_t kBytes = 300'007;  // no multiple of anything
constexpr double kDelay = 10;            // milliseconds

RawMemory device_memory(const RawChain& chain) { return RawMemory(chain.bottom(), GPUNN_MEMORY_DEVICE, kBytes); }

std::vector<std::byte> bytes_of(const void* data) {
  std::vector<std::byte> bytes(kBytes);
  std::memcpy(bytes.data(), data, kBytes);
  return bytes;
}

// Two messages from host memory through the same place on the device and back, without the host waiting in between.
// `input` and `output` hold two messages each.
void send_through(const RawChain& chain, const Delay& delay, std::byte* input, std::byte* output,
                  const std::string& kind) {
  const RawMemory place = device_memory(chain), first = device_memory(chain), second = device_memory(chain);
  const RawStream stream(chain.bottom());  // after the memory: it comes to rest before that is freed
  std::ranges::copy(pattern(kBytes, 1), input);
  std::ranges::copy(pattern(kBytes, 2), input + kBytes);
  std::fill_n(output, 2 * kBytes, std::byte{0xEE});
  delay.enqueue(stream, kDelay);
  stream.copy(place.data(), input, kBytes, GPUNN_HOST_TO_DEVICE);
  stream.copy(first, place);
  stream.copy(place.data(), input + kBytes, kBytes, GPUNN_HOST_TO_DEVICE);
  stream.copy(second, place);
  stream.copy(output, first.data(), kBytes, GPUNN_DEVICE_TO_HOST);
  stream.copy(output + kBytes, second.data(), kBytes, GPUNN_DEVICE_TO_HOST);
  stream.synchronize();
  const std::string what = "copies from " + kind + " host memory, on the device and back, put on one stream, ";
  demand_equal(pattern(kBytes, 1), bytes_of(output), what + "lost the first of two messages");
  demand_equal(pattern(kBytes, 2), bytes_of(output + kBytes), what + "lost the second of two messages");
}

std::string check_pinned(const RawChain& chain, const Delay& delay) {
  const RawMemory input(chain.bottom(), GPUNN_MEMORY_PINNED, 2 * kBytes);
  const RawMemory output(chain.bottom(), GPUNN_MEMORY_PINNED, 2 * kBytes);
  send_through(chain, delay, static_cast<std::byte*>(input.data()), static_cast<std::byte*>(output.data()), "pinned");
  return "";
}

std::string check_pageable(const RawChain& chain, const Delay& delay) {
  std::vector<std::byte> input(2 * kBytes), output(2 * kBytes);
  send_through(chain, delay, input.data(), output.data(), "ordinary");
  return "";
}

std::string check_fills(const RawChain& chain, const Delay& delay) {
  const RawMemory place = device_memory(chain), first = device_memory(chain), second = device_memory(chain);
  const RawStream stream(chain.bottom());  // after the memory: it comes to rest before that is freed
  delay.enqueue(stream, kDelay);
  stream.fill(place, 0x11);
  stream.copy(first, place);
  stream.fill(place, 0x22);
  stream.copy(second, place);
  stream.fill(place, 0x33);
  stream.synchronize();
  for (const auto& [memory, value] : {std::pair{&first, 0x11}, std::pair{&second, 0x22}, std::pair{&place, 0x33}}) {
    std::vector<std::byte> received(kBytes);
    memory->read(received);
    demand_equal(std::vector<std::byte>(kBytes, static_cast<std::byte>(value)), received,
                 "fills and copies on one stream were not done in order");
  }
  return "";
}

// The plugin that owns the stream and one that wraps it take turns on it.
std::string check_wrappers(const RawChain& chain, const Delay& delay) {
  const RawMemory source = device_memory(chain), target = device_memory(chain);
  const RawMemory first = device_memory(chain), second = device_memory(chain);
  const RawStream stream(chain.bottom());
  for (std::size_t level = 0; level < chain.size(); ++level) {
    const RawStream wrapper(chain.at(level), stream);
    const std::vector<std::byte> sent = pattern(kBytes, static_cast<int>(level));
    source.write(sent);
    for (const RawMemory* memory : {&first, &second, &target}) {
      memory->write(std::vector<std::byte>(kBytes, std::byte{0xEE}));
    }
    const std::string who = "'" + chain.at(level).plugin().name() + "', which wraps a stream of '" +
                            chain.bottom().plugin().name() + "', and its owner took turns on it; ";
    // The owner is slow, and the wrapper's work comes behind it.
    delay.enqueue(stream, kDelay);
    stream.copy(first, source);
    wrapper.copy(second, first);
    // And the other way round.
    stream.copy(target, second);
    stream.synchronize();
    std::vector<std::byte> received(kBytes);
    target.read(received);
    demand_equal(sent, received, who + "their copies were not done in order");

    // The wrapper's synchronisation is the stream's.
    target.write(std::vector<std::byte>(kBytes, std::byte{0xEE}));
    delay.enqueue(stream, kDelay);
    stream.copy(target, source);
    wrapper.synchronize();
    const RawStream other(chain.bottom());
    other.copy(received.data(), target.data(), kBytes, GPUNN_DEVICE_TO_HOST);
    other.synchronize();
    stream.synchronize();
    demand_equal(sent, received, who + "stream_sync of the wrapper came back before the owner's copy was done");
  }
  return "";
}

}  // namespace

std::vector<StreamCheck> in_order_checks() {
  return {{"copy", "pinned memory, the device and back", check_pinned},
          {"copy", "ordinary memory, the device and back", check_pageable},
          {"fill", "between copies", check_fills},
          {"stream_wrap", "a wrapper and the owner take turns", check_wrappers}};
}

}  // namespace gpunn::conformance
