#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "execution/streams/event.hpp"

namespace gpunn::execution {

// Device seconds between the two events around the enqueued work: the least of `repeats`.
double best_seconds(Event& start, Event& stop, int repeats, const std::function<void()>& work);

// The piece, again and again: a copy from the host, doubled on the device.
void fill_with(Backend& backend, void* data, uint64_t bytes, std::span<const std::byte> piece);

}  // namespace gpunn::execution
