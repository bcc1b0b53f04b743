#pragma once

#include <gpunn/ops.h>

#include <cstdint>
#include <span>

namespace gpunn::training {

// The rows of a split that make up the batch of a step.
struct Sampling {
  int64_t rows = 0;  // of the split
  int64_t batch = 0;
  bool shuffle = false;
  bool drop_last = false;
  uint64_t seed = 0;

  int64_t steps_per_epoch() const;
  bool has_partial_batch() const { return !drop_last && rows % batch != 0; }  // the last of an epoch
  gpunn_sample_attrs attributes() const;                                      // of SAMPLE_INDICES
  // Computes SAMPLE_INDICES of a step on the host: index[batch], -1 past the last. Returns the number of valid entries.
  int32_t rows_of_step(int64_t step, std::span<int32_t> index) const;
};

}  // namespace gpunn::training
