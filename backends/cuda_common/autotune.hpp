// The autotuner: chooses the algorithm for an op at one shape. It times the candidates on this GPU, keeps the fastest,
// and stores the choice in a cache.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cuda_common/algorithm.hpp"
#include "cuda_common/tuned_device.hpp"

namespace gpunn::cuda {

// The algorithms to choose from.
struct Candidates {
  std::vector<AlgorithmPtr> algorithms;  // in order of preference, the library's or the ladder's
  // The first candidate whose results are right by construction. Candidates before it are taken only if they agree with
  // it: a fused ReLU may lose a NaN, and no documentation says which do.
  std::size_t first_trusted = 0;
};

struct TuningTask {
  std::string key;     // op, shape, precision and whatever else the choice depends on
  int64_t terms = 1;   // of a sum of the op, for what counts as agreement
  int nan_input = -1;  // the input that is given a NaN for the comparison; -1: none
  std::function<Candidates()> candidates;
  std::function<AlgorithmPtr(const std::string& name)> restore;  // throws where there is no such algorithm any more
};

// Returns the algorithm that the cache names. Without an entry it times the candidates on random data in separate
// memory and returns the fastest. If the op must be deterministic, nothing is timed: the first working candidate is
// taken, so that two runs use the same one. If memory for the trial is lacking, the first trusted candidate is taken.
AlgorithmPtr choose_algorithm(TunedDevice& device, const plugin::OpDesc& desc, const TuningTask& task);

// The name of a precision as experiments write it, such as "fp32".
const char* precision_name(int32_t precision);

}  // namespace gpunn::cuda
