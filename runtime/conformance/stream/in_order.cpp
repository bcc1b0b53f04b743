// What is put on one stream is done in that order, whichever plugin of the chain puts it there.
#include <algorithm>
#include <cstring>

#include "conformance/abi/abi_checks.hpp"
#include "conformance/stream/ordering.hpp"

namespace gpunn::conformance {

namespace {

constexpr std::size_t kMessageBytes = 300'007;  // no multiple of anything
constexpr double kMessageDelay = 10;            // milliseconds

RawMemory message_memory(const RawChain& chain) {
  return RawMemory(chain.bottom(), GPUNN_MEMORY_DEVICE, kMessageBytes);
}

std::vector<std::byte> bytes_of(const void* data) {
  std::vector<std::byte> bytes(kMessageBytes);
  std::memcpy(bytes.data(), data, kMessageBytes);
  return bytes;
}

// Two messages from host memory through the same place on the device and back, without the host waiting in between.
// `input` and `output` hold two messages each.
void send_through(const RawChain& chain, const Delay& delay, std::byte* input, std::byte* output,
                  const std::string& kind) {
  const RawMemory place = message_memory(chain), first = message_memory(chain), second = message_memory(chain);
  const RawStream stream(chain.bottom());  // after the memory: it comes to rest before that is freed
  std::ranges::copy(pattern(kMessageBytes, 1), input);
  std::ranges::copy(pattern(kMessageBytes, 2), input + kMessageBytes);
  std::fill_n(output, 2 * kMessageBytes, std::byte{0xEE});
  delay.enqueue(stream, kMessageDelay);
  stream.copy(place.data(), input, kMessageBytes, GPUNN_HOST_TO_DEVICE);
  stream.copy(first, place);
  stream.copy(place.data(), input + kMessageBytes, kMessageBytes, GPUNN_HOST_TO_DEVICE);
  stream.copy(second, place);
  stream.copy(output, first.data(), kMessageBytes, GPUNN_DEVICE_TO_HOST);
  stream.copy(output + kMessageBytes, second.data(), kMessageBytes, GPUNN_DEVICE_TO_HOST);
  stream.synchronize();
  const std::string what = "copies from " + kind + " host memory, on the device and back, put on one stream, ";
  demand_equal(pattern(kMessageBytes, 1), bytes_of(output), what + "lost the first of two messages");
  demand_equal(pattern(kMessageBytes, 2), bytes_of(output + kMessageBytes), what + "lost the second of two messages");
}

std::string check_pinned(const RawChain& chain, const Delay& delay) {
  const RawMemory input(chain.bottom(), GPUNN_MEMORY_PINNED, 2 * kMessageBytes);
  const RawMemory output(chain.bottom(), GPUNN_MEMORY_PINNED, 2 * kMessageBytes);
  send_through(chain, delay, static_cast<std::byte*>(input.data()), static_cast<std::byte*>(output.data()), "pinned");
  return "";
}

std::string check_pageable(const RawChain& chain, const Delay& delay) {
  std::vector<std::byte> input(2 * kMessageBytes), output(2 * kMessageBytes);
  send_through(chain, delay, input.data(), output.data(), "ordinary");
  return "";
}

std::string check_fills(const RawChain& chain, const Delay& delay) {
  const RawMemory place = message_memory(chain), first = message_memory(chain), second = message_memory(chain);
  const RawStream stream(chain.bottom());  // after the memory: it comes to rest before that is freed
  delay.enqueue(stream, kMessageDelay);
  stream.fill(place, 0x11);
  stream.copy(first, place);
  stream.fill(place, 0x22);
  stream.copy(second, place);
  stream.fill(place, 0x33);
  stream.synchronize();
  for (const auto& [memory, value] : {std::pair{&first, 0x11}, std::pair{&second, 0x22}, std::pair{&place, 0x33}}) {
    std::vector<std::byte> received(kMessageBytes);
    memory->read(received);
    demand_equal(std::vector<std::byte>(kMessageBytes, static_cast<std::byte>(value)), received,
                 "fills and copies on one stream were not done in order");
  }
  return "";
}

// The plugin that owns the stream and one that wraps it take turns on it.
std::string check_wrappers(const RawChain& chain, const Delay& delay) {
  const RawMemory source = message_memory(chain), target = message_memory(chain);
  const RawMemory first = message_memory(chain), second = message_memory(chain);
  const RawStream stream(chain.bottom());
  for (std::size_t level = 0; level < chain.size(); ++level) {
    const RawStream wrapper(chain.at(level), stream);
    const std::vector<std::byte> sent = pattern(kMessageBytes, static_cast<int>(level));
    source.write(sent);
    for (const RawMemory* memory : {&first, &second, &target}) {
      memory->write(std::vector<std::byte>(kMessageBytes, std::byte{0xEE}));
    }
    const std::string who = "'" + chain.at(level).plugin().name() + "', which wraps a stream of '" +
                            chain.bottom().plugin().name() + "', and its owner took turns on it; ";
    // The owner is slow, and the wrapper's work comes behind it.
    delay.enqueue(stream, kMessageDelay);
    stream.copy(first, source);
    wrapper.copy(second, first);
    // And the other way round.
    stream.copy(target, second);
    stream.synchronize();
    std::vector<std::byte> received(kMessageBytes);
    target.read(received);
    demand_equal(sent, received, who + "their copies were not done in order");

    // The wrapper's synchronisation is the stream's.
    target.write(std::vector<std::byte>(kMessageBytes, std::byte{0xEE}));
    delay.enqueue(stream, kMessageDelay);
    stream.copy(target, source);
    wrapper.synchronize();
    const RawStream other(chain.bottom());
    other.copy(received.data(), target.data(), kMessageBytes, GPUNN_DEVICE_TO_HOST);
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
