#include "training/batch_fill.hpp"

#include <gpunn/error.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace gpunn::training {

BatchFill fill_from_split(const Split& split, const SplitType& type, const Sampling& sampling) {
  const std::byte* const samples = split.sample_bytes().data();
  const std::byte* const targets =
      type.targets > 0 ? split.fields.at(kTargetField).values.data() : std::as_bytes(std::span(split.labels)).data();
  const std::size_t sample_bytes = split.sample_bytes().size() / static_cast<std::size_t>(split.rows());
  const std::size_t target_bytes = static_cast<std::size_t>(type.words_of_row()) * sizeof(int32_t);
  const auto index = std::make_shared<std::vector<int32_t>>(static_cast<std::size_t>(sampling.batch));
  return [=](int64_t step, std::span<std::byte> to_samples, std::span<std::byte> to_targets) {
    const int32_t count = sampling.rows_of_step(step, *index);
    for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
      const auto row = static_cast<std::size_t>((*index)[k]);
      std::memcpy(to_samples.data() + k * sample_bytes, samples + row * sample_bytes, sample_bytes);
      std::memcpy(to_targets.data() + k * target_bytes, targets + row * target_bytes, target_bytes);
    }
    return static_cast<int64_t>(count);
  };
}

BatchFill fill_from_source(BatchSource& source, const SplitType& type, int64_t steps) {
  const int64_t most = type.ring.value().batch;
  return [&source, most, steps](int64_t step, std::span<std::byte> samples, std::span<std::byte> targets) {
    if (step >= steps) return int64_t{0};
    const int64_t rows = source.read(step, samples, targets);
    if (rows >= 1 && rows <= most) return rows;
    throw Error("the batch of step " + std::to_string(step + 1) + " has " + std::to_string(rows) +
                    " rows; expected 1 to " + std::to_string(most) + ", as data.batch_size says",
                ExitCode::usage);
  };
}

}  // namespace gpunn::training
