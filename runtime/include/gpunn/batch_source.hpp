#pragma once

#include <gpunn/export.h>

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

  // Writes the batch of a training step, counted from 0 over all epochs that the network has learnt, to the front of
  // the two arrays, which have room for data.batch_size rows: samples of Split::samples' type, and labels i32[rows] or
  // targets f32[rows, outputs]. Returns the number of rows, at least 1. It is called for each step once, in their
  // order, some steps ahead and on a thread of the training's own. An exception ends the training.
  virtual int64_t read(int64_t step, std::span<std::byte> samples, std::span<std::byte> targets) = 0;

  // Whether every batch is full and quickly read. Then many are read ahead.
  virtual bool always_full() const { return false; }
  // Identifies the source, so that a resumed training notices another one. 0: nothing is known beforehand.
  virtual uint32_t digest() const { return 0; }
};

}  // namespace gpunn
