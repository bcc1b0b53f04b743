#include <algorithm>
#include <cstdint>

#include "conformance/abi/abi_checks.hpp"

namespace gpunn::conformance {

namespace {

std::vector<std::byte> counted_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 256);
  return bytes;
}

void copy(const RawDevice& device, void* to, const void* from, uint64_t bytes, int32_t direction) {
  device.call("copy of " + std::to_string(bytes) + " bytes", [&](gpunn_error* error) {
    return device.table().copy(device.stream(), to, from, bytes, direction, error);
  });
}

void check_alignment(const RawChain& chain) {
  const RawDevice& device = chain.bottom();
  const uint64_t alignment = device.info().alignment;
  for (const uint64_t bytes : {1, 3, 64, 1000, 1 << 20}) {
    const RawMemory memory(device, GPUNN_MEMORY_DEVICE, bytes);
    demand(memory.data() != nullptr, "memory_alloc of " + std::to_string(bytes) + " bytes gave NULL");
    demand(reinterpret_cast<uintptr_t>(memory.data()) % alignment == 0,
           "memory_alloc of " + std::to_string(bytes) + " bytes is not aligned to " + std::to_string(alignment));
  }
}

// Zero bytes may give NULL or an address, and no failure.
void check_empty(const RawChain& chain) {
  const RawMemory memory(chain.bottom(), GPUNN_MEMORY_DEVICE, 0);
  copy(chain.bottom(), memory.data(), nullptr, 0, GPUNN_HOST_TO_DEVICE);
  chain.bottom().synchronize();
}

void check_too_much(const RawChain& chain) {
  const RawDevice& device = chain.bottom();
  void* data = nullptr;
  const plugins::CallResult result = plugins::guarded([&](gpunn_error* error) {
    return device.table().memory_alloc(device.device(), GPUNN_MEMORY_DEVICE, UINT64_MAX - 5, &data, error);
  });
  demand(!result.ok(), "memory_alloc of 2^64 - 6 bytes said OK");
}

void check_round_trip(const RawChain& chain) {
  const RawDevice& device = chain.bottom();
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{4099}, std::size_t{1} << 20}) {
    const std::vector<std::byte> sent = counted_bytes(size);
    const RawMemory first(device, GPUNN_MEMORY_DEVICE, size), second(device, GPUNN_MEMORY_DEVICE, size);
    std::vector<std::byte> received(size);
    first.write(sent);
    copy(device, second.data(), first.data(), size, GPUNN_DEVICE_TO_DEVICE);
    second.read(received);
    demand(received == sent, "a copy of " + std::to_string(size) + " bytes to the device, on it and back changed them");
  }
}

void check_pinned(const RawChain& chain) {
  const RawDevice& device = chain.bottom();
  const std::vector<std::byte> sent = counted_bytes(4099);
  const RawMemory pinned(device, GPUNN_MEMORY_PINNED, sent.size());
  const RawMemory memory(device, GPUNN_MEMORY_DEVICE, sent.size());
  auto* host = static_cast<std::byte*>(pinned.data());
  std::ranges::copy(sent, host);
  copy(device, memory.data(), host, sent.size(), GPUNN_HOST_TO_DEVICE);
  device.synchronize();
  std::fill_n(host, sent.size(), std::byte{0});
  copy(device, host, memory.data(), sent.size(), GPUNN_DEVICE_TO_HOST);
  device.synchronize();
  demand(std::ranges::equal(sent, std::span(host, sent.size())), "bytes changed on their way through pinned memory");
}

void check_fill(const RawChain& chain) {
  const RawDevice& device = chain.bottom();
  std::vector<std::byte> expected = counted_bytes(1031);
  const RawMemory memory(device, GPUNN_MEMORY_DEVICE, expected.size());
  memory.write(expected);
  const auto fill = [&](std::size_t from, uint8_t value, uint64_t bytes) {
    device.call("fill of " + std::to_string(bytes) + " bytes", [&](gpunn_error* error) {
      return device.table().fill(device.stream(), static_cast<std::byte*>(memory.data()) + from, value, bytes, error);
    });
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(from), bytes, std::byte{value});
  };
  fill(3, 0xAB, 600);
  fill(0, 0x00, 1);
  fill(1030, 0xFF, 1);
  fill(700, 0x11, 0);
  device.synchronize();
  std::vector<std::byte> received(expected.size());
  memory.read(received);
  demand(received == expected, "fill did not write exactly the bytes that it was given");
}

}  // namespace

std::vector<AbiCheck> memory_checks() {
  return {{"memory_alloc", "alignment", check_alignment},         {"memory_alloc", "zero bytes", check_empty},
          {"memory_alloc", "more than there is", check_too_much}, {"copy", "there and back", check_round_trip},
          {"copy", "through pinned memory", check_pinned},        {"fill", "writes exactly its bytes", check_fill}};
}

}  // namespace gpunn::conformance
