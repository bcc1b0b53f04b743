#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gpunn::training {

// A field of the samples on the device, other than the first input.
struct DeviceField {
  std::string name;
  TensorType row;                // of one row: u8[H, W], i32[], f32[columns]
  bool is_weight = false;        // f32[] of each row: scales its loss
  bool lies_in_picture = false;  // its values move with the picture
  int64_t border = 0;            // the value outside the picture, of integers
  bool is_input = false;         // the model takes it
  bool normalised = false;       // of bytes of an input, as of an image: the model takes raw * scale + shift
  TensorType rows(int64_t count) const {
    TensorType type = row;
    type.shape.insert(type.shape.begin(), count);
    return type;
  }
};

// The memory of a streamed split's batches on the device: slots for a batch each. Step t uses slot t mod slots(). The
// slots are refilled by groups, one group while the other is computed on.
struct BatchRing {
  static constexpr int64_t kGroups = 2;

  int64_t batch = 0;    // rows of a batch
  int64_t group = 0;    // batches of a group
  bool varied = false;  // any batch may have fewer rows than `batch`
  TensorType samples;   // [slots * batch, ...], stored as in the split
  // i32 [slots, words]: besides its samples each slot has the other fields of its rows, indices into the ring's samples
  // [batch], -1 past the last, the count of the others, and the rows of the step on all ranks; each of them at an
  // aligned place.
  TensorType rows;
  std::vector<int64_t> fields_at;  // in words of a slot
  int64_t index_at = 0, count_at = 0, all_at = 0;

  int64_t slots() const { return kGroups * group; }
  int64_t words() const { return rows.shape[1]; }
};

// For batches of a split whose samples are [rows, ...], with these other fields. Small batches go in large groups, so
// that a copy is worth its while and many steps can share a launch; but one by one if they are `slow` to make, so that
// the first step waits for its own batch only.
BatchRing lay_out_ring(const TensorType& split, const std::vector<DeviceField>& fields, int64_t batch,
                       uint64_t alignment, bool slow = false);

// For batches that the calling program supplies, of at most `batch` rows. They go one by one: the program may take
// longer for one than the device does, and should be no further ahead than it has to.
BatchRing ring_of_source(const TensorType& samples, const std::vector<DeviceField>& fields, int64_t batch,
                         uint64_t alignment);

}  // namespace gpunn::training
