#pragma once

#include <gpunn/bench.hpp>

#include <functional>
#include <vector>

#include "execution/backend.hpp"

namespace gpunn::bench {

// The median of at least one number, in rising order; the mean of the middle two if their count is even.
double median_of_sorted(const std::vector<double>& sorted);

// Runs `sample`, which does `runs` runs and waits for them, warmup and then repeats times. Fills repeats and the
// seconds of one run.
BenchReport measure(const std::function<void()>& sample, const BenchOptions& options, int runs);

// Statistics of the backend's pool so far.
void add_pool(const execution::Backend& backend, BenchReport& report);

}  // namespace gpunn::bench
