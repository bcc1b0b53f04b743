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
  // A last batch of one row joins the batch before it: a layer that looks at its batch can't learn from a single row.
  bool join_single = false;
  // The epochs before these steps may have had other lengths. Step t is step t + shift of epochs of this length.
  int64_t shift = 0;

  bool joins() const { return join_single && !drop_last && batch > 1 && rows > batch && rows % batch == 1; }
  int64_t width() const { return batch + (joins() ? 1 : 0); }  // rows that a batch has room for
  int64_t steps_per_epoch() const;
  int64_t epoch_of(int64_t step) const { return (step + shift) / steps_per_epoch(); }
  bool has_partial_batch() const { return !drop_last && rows % batch != 0; }  // some batch of an epoch is not full
  // Of SAMPLE_INDICES, which takes step + shift. The op knows no joined batches: they are picked on the host.
  gpunn_sample_attrs attributes() const;
  // Computes SAMPLE_INDICES of a step on the host: index[width], -1 past the last. Returns the number of valid entries.
  int32_t rows_of_step(int64_t step, std::span<int32_t> index) const;
};

}  // namespace gpunn::training
