#pragma once

#include <gpunn/bench.hpp>

#include <functional>

#include "graph/graph.hpp"

namespace gpunn::bench {

// Runs `sample`, which does `runs` runs and waits for them, warmup and then repeats times. Fills repeats and the
// seconds of one run.
BenchReport measure(const std::function<void()>& sample, const BenchOptions& options, int runs);

// Multiplications and additions of one run of an op; one an output element where the catalogue does not say.
double flops_of(const graph::OpSignature& signature);

}  // namespace gpunn::bench
