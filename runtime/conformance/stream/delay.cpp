#include "conformance/stream/delay.hpp"

#include <algorithm>
#include <chrono>

namespace gpunn::conformance {

namespace {

constexpr uint64_t kDelayBytes = uint64_t{16} << 20U;
constexpr int kTimed = 8;
constexpr double kMostCopies = 4000;

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Delay::Delay(const RawChain& chain)
    : from_(chain.bottom(), GPUNN_MEMORY_DEVICE, kDelayBytes), to_(chain.bottom(), GPUNN_MEMORY_DEVICE, kDelayBytes) {
  const RawStream stream(chain.bottom());
  stream.fill(from_, 0);
  stream.copy(to_, from_);
  stream.synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimed; ++i) stream.copy(to_, from_);
  const double enqueued = milliseconds_since(start);
  stream.synchronize();
  const double done = milliseconds_since(start);
  asynchronous_ = enqueued < 0.7 * done;
  copy_milliseconds_ = done / kTimed;
}

void Delay::enqueue(const RawStream& stream, double milliseconds) const {
  const double copies = asynchronous_ ? std::clamp(milliseconds / copy_milliseconds_, 1.0, kMostCopies) : 1;
  for (int i = 0; i < static_cast<int>(copies); ++i) stream.copy(to_, from_);
}

}  // namespace gpunn::conformance
