#pragma once

#include <gpunn/bench.hpp>

#include <functional>

namespace gpunn::bench {

// Runs `sample`, which does `runs` runs and waits for them, warmup and then repeats times. Fills repeats and the
// seconds of one run.
BenchReport measure(const std::function<void()>& sample, const BenchOptions& options, int runs);

}  // namespace gpunn::bench
