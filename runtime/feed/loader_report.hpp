#pragma once

#include <gpunn/training.hpp>

#include <cstdint>
#include <string>

namespace gpunn::training {

// What a stream of batches has done so far.
struct LoaderCounts {
  int64_t samples = 0;
  double filling_seconds = 0;  // of the loader's thread, in which it was not waiting for a free buffer
  double waited_seconds = 0;   // of the device, for batches
};

LoaderReport loader_report(const LoaderCounts& before, const LoaderCounts& after);

// Whether the device waited long enough for batches to be slowed down by them.
bool loader_limits(const LoaderReport& loader, double seconds);
// Which of the two limits a training that takes so many samples a second, for a line of the log. `seconds` is the time
// of the steps.
std::string loader_text(const LoaderReport& loader, double samples_per_second, double seconds);

}  // namespace gpunn::training
