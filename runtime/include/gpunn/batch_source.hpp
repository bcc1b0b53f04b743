#pragma once

#include <gpunn/export.h>
#include <gpunn/field.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpunn {

// Arrays for a batch, each with room for data.batch_size rows.
struct BatchRoom {
  std::span<std::byte> samples;  // of Split::samples' type
  std::vector<std::span<std::byte>>
      fields;  // of the other fields, in the order of Dataset::fields; ids are not among them
};

// Batches that a program supplies while it trains, instead of the training samples of a data set.
class GPUNN_API BatchSource {
 public:
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  virtual ~BatchSource() = default;

  // Writes the batch of a training step to the front of the arrays and returns its number of rows, at least 1. `step`
  // counts from 0 over all epochs that the network has learnt. A thread of the run calls this once for each step, in
  // order, some steps ahead. An exception ends the run.
  virtual int64_t read(int64_t step, const BatchRoom& room) = 0;

  // The dtype in which it gives a field other than the first input: that of the device, or f64 for f32.
  virtual DType dtype_of(const Field& field) const { return field.type.dtype; }
  // Whether every batch is full and fast to read. If so, the training reads many batches ahead.
  virtual bool always_full() const { return false; }
  // Identifies the source, so that a resumed training notices another one. 0: unknown.
  virtual uint32_t digest() const { return 0; }
};

}  // namespace gpunn
