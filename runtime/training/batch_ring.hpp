#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstdint>

namespace gpunn::training {

// The memory of a streamed split's batches on the device: slots for a batch each. Step t uses slot t mod slots(). The
// slots are refilled by groups, one group while the other is computed on.
struct BatchRing {
  static constexpr int64_t kGroups = 2;

  int64_t batch = 0;    // rows of a batch
  int64_t group = 0;    // batches of a group
  bool varied = false;  // any batch may have fewer rows than `batch`
  TensorType samples;   // [slots * batch, ...], stored as in the split
  // i32 [slots, words]: beside its samples each slot has what its rows are to be learnt from, labels i32[batch] or
  // targets f32[batch, ...], indices into the ring's samples [batch], -1 past the last, the count of the others, and
  // the rows of the step on all ranks; each of the four at an aligned place.
  TensorType rows;
  int64_t index_at = 0, count_at = 0, all_at = 0;  // in words of a slot; labels or targets come first

  int64_t slots() const { return kGroups * group; }
  int64_t words() const { return rows.shape[1]; }
};

// For batches of a split whose samples are [rows, ...], with so many words a row of what it is to be learnt from. Small
// batches go in large groups, so that a copy is worth its while and many steps can share a launch; but one by one where
// they are `slow` to make, so that the first step waits for its own batch alone.
BatchRing lay_out_ring(const TensorType& split, int64_t words_of_row, int64_t batch, uint64_t alignment,
                       bool slow = false);

// The same for batches that the calling program brings, of at most `batch` rows. They go one by one: the program may
// take longer for one than the device does, and is to be no further ahead than it has to.
BatchRing ring_of_source(const TensorType& samples, int64_t words_of_row, int64_t batch, uint64_t alignment);

}  // namespace gpunn::training
