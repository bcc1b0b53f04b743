// Choosing an algorithm for an op at one shape: the fastest on this GPU, found by trying and remembered.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cuda_common/algorithm.hpp"
#include "cuda_common/tuned_device.hpp"

namespace gpunn::cuda {

// What there is to choose from.
struct Candidates {
  std::vector<AlgorithmPtr> algorithms;  // in order of preference, the library's or the ladder's
  // The first whose results are right by construction. The others are taken only where they agree with it: a fused
  // ReLU may lose a NaN, and no documentation says which does.
  std::size_t first_trusted = 0;
};

struct TuningTask {
  std::string key;     // op, shape, precision and whatever else the choice depends on
  int64_t terms = 1;   // of a sum of the op, for what counts as agreement
  int nan_input = -1;  // the input that is given a NaN for the comparison; -1: none
  std::function<Candidates()> candidates;
  std::function<AlgorithmPtr(const std::string& name)> restore;  // throws where there is no such algorithm any more
};

// The algorithm that the cache names; else the fastest of the candidates, timed on random data in memory of its own.
// Where the op must be deterministic nothing is timed: the first candidate that works is taken, so that two runs take
// the same one whatever the clock says. Where there is no memory to try them in, the first trusted candidate is taken.
AlgorithmPtr choose_algorithm(TunedDevice& device, const plugin::OpDesc& desc, const TuningTask& task);

// "fp32", as experiments write it.
const char* precision_name(int32_t precision);

}  // namespace gpunn::cuda
