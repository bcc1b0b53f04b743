#pragma once

#include <gpunn/bench.hpp>

#include <functional>

#include "execution/backend.hpp"

namespace gpunn::bench {

// Runs `sample`, which does `runs` runs and waits for them, warmup and then repeats times. Fills repeats and the
// seconds of one run.
BenchReport measure(const std::function<void()>& sample, const BenchOptions& options, int runs);

// What the backend's pool has done so far.
void add_pool(const execution::Backend& backend, BenchReport& report);

}  // namespace gpunn::bench
