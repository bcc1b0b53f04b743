#pragma once

#include <gpunn/export.h>
#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpunn {

// Batches that a program brings while it trains, in place of the training samples of a data set.
class GPUNN_API BatchSource {
 public:
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  virtual ~BatchSource() = default;

  // Writes the batch of a training step to the front of the two arrays and returns its number of rows, at least 1.
  // `step` counts from 0 over all epochs that the network has learnt. The arrays have room for data.batch_size rows:
  // samples of Split::samples' type, and labels i32[rows] or targets [rows, outputs]. A thread of the training calls
  // this once for each step, in order, some steps ahead. An exception ends the training.
  virtual int64_t read(int64_t step, std::span<std::byte> samples, std::span<std::byte> targets) = 0;

  // The type of its targets, if they are not labels: f32, or for the numbers of a regression f64.
  virtual DType target_type() const { return DType::f32; }
  // Whether every batch is full and fast to read. If so, the training reads many batches ahead.
  virtual bool always_full() const { return false; }
  // Identifies the source, so that a resumed training notices another one. 0: unknown.
  virtual uint32_t digest() const { return 0; }
};

}  // namespace gpunn
