#include "execution/measurement/timed_work.hpp"

#include <algorithm>
#include <limits>

namespace gpunn::execution {

double best_seconds(Event& start, Event& stop, int repeats, const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    start.record();
    work();
    stop.record();
    stop.synchronize();
    best = std::min(best, stop.milliseconds_since(start) * 1e-3);
  }
  return best;
}

void fill_with(Backend& backend, void* data, uint64_t bytes, std::span<const std::byte> piece) {
  uint64_t filled = std::min<uint64_t>(piece.size(), bytes);
  backend.upload(data, piece.data(), filled);
  while (filled < bytes) {
    const uint64_t more = std::min(filled, bytes - filled);
    backend.copy(static_cast<std::byte*>(data) + filled, data, more);
    filled += more;
  }
}

}  // namespace gpunn::execution
