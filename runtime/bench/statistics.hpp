#pragma once

#include <gpunn/bench.hpp>

#include <functional>
#include <vector>

#include "execution/backend.hpp"

namespace gpunn::bench {

// Of numbers in rising order, one at least; the mean of the middle two where their count is even.
double median_of_sorted(const std::vector<double>& sorted);

// Runs `sample`, which does `runs` runs and waits for them, warmup and then repeats times. Fills repeats and the
// seconds of one run.
BenchReport measure(const std::function<void()>& sample, const BenchOptions& options, int runs);

// What the backend's pool has done so far.
void add_pool(const execution::Backend& backend, BenchReport& report);

}  // namespace gpunn::bench
