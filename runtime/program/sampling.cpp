#include "program/sampling.hpp"

#include <gpunn/random.h>

#include <algorithm>

namespace gpunn::training {

namespace {

// The sampler's own sequence of random numbers; dropout's begin at 2^32, initial weights' at 2^33, augmentation's at
// 2^34.
constexpr uint64_t kSamplerStream = 1;

}  // namespace

int64_t Sampling::steps_per_epoch() const { return drop_last || joins() ? rows / batch : (rows + batch - 1) / batch; }

gpunn_sample_attrs Sampling::attributes() const {
  return {.struct_size = sizeof(gpunn_sample_attrs),
          .shuffle = shuffle,
          .rows = rows,
          .batch = static_cast<int32_t>(batch),
          .drop_last = drop_last,
          .seed = seed,
          .stream = kSamplerStream};
}

int32_t Sampling::rows_of_step(int64_t step, std::span<int32_t> index) const {
  if (step + shift < 0) {  // before these epochs: a group of batches may begin there
    std::ranges::fill(index, -1);
    return 0;
  }
  const int64_t epoch = epoch_of(step), place = (step + shift) % steps_per_epoch();
  const int64_t first = place * batch;
  const bool last = place + 1 == steps_per_epoch();
  const int64_t count = std::min(last ? width() : batch, rows - first);
  for (int64_t i = 0; i < count; ++i) {
    const auto position = static_cast<uint32_t>(first + i);
    index[static_cast<std::size_t>(i)] = static_cast<int32_t>(
        shuffle ? gpunn_random_permute(seed, kSamplerStream, epoch, static_cast<uint32_t>(rows), position) : position);
  }
  std::fill(index.begin() + count, index.end(), -1);
  return static_cast<int32_t>(count);
}

}  // namespace gpunn::training
