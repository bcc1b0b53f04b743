#include "training/batch_fill.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/parallel.hpp"
#include "data/variation/varied_sample.hpp"

namespace gpunn::training {

BatchFill fill_from_split(const Split& split, const SplitType& type, const Sampling& sampling,
                          const data::SampleVariation* variation) {
  return fill_from_split_part(split, type, sampling, {0, sampling.width()}, variation);
}

BatchFill fill_from_split_part(const Split& split, const SplitType& type, const Sampling& sampling,
                               distributed::Share part, const data::SampleVariation* variation) {
  const std::byte* const targets =
      type.targets > 0 ? split.fields.at(kTargetField).values.data() : std::as_bytes(std::span(split.labels)).data();
  const std::size_t sample_bytes = split.samples.bytes() / static_cast<std::size_t>(split.rows());
  const std::size_t target_bytes = static_cast<std::size_t>(type.words_of_row()) * sizeof(int32_t);
  // Samples that are only copied are not worth a thread of their own.
  const int64_t at_once = split.source == nullptr && variation == nullptr ? part.count() : 1;
  const auto index = std::make_shared<std::vector<int32_t>>(static_cast<std::size_t>(sampling.width()));
  return [=, &split](int64_t step, std::span<std::byte> to_samples, std::span<std::byte> to_targets) {
    const int64_t all = sampling.rows_of_step(step, *index);
    const int64_t count = std::clamp<int64_t>(all - part.begin, 0, part.count());
    const auto epoch = static_cast<uint64_t>(sampling.epoch_of(step));
    data::for_row_stretches(count, std::max<int64_t>(at_once, 1), [&](int64_t first, int64_t last) {
      for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
        const auto row = static_cast<std::size_t>((*index)[static_cast<std::size_t>(part.begin) + k]);
        data::read_sample(split, static_cast<int64_t>(row), variation, epoch,
                          to_samples.subspan(k * sample_bytes, sample_bytes));
        std::memcpy(to_targets.data() + k * target_bytes, targets + row * target_bytes, target_bytes);
      }
    });
    return FilledRows{count, all};
  };
}

BatchFill fill_from_part(BatchFill whole, const SplitType& type, int64_t rows, distributed::Share part) {
  const std::size_t target_bytes = static_cast<std::size_t>(type.words_of_row()) * sizeof(int32_t);
  const std::size_t sample_bytes = type.samples.bytes() / static_cast<std::size_t>(type.rows());
  struct Room {
    std::vector<std::byte> samples, targets;
  };
  const auto room = std::make_shared<Room>();
  room->samples.resize(static_cast<std::size_t>(rows) * sample_bytes);
  room->targets.resize(static_cast<std::size_t>(rows) * target_bytes);
  return [=, whole = std::move(whole)](int64_t step, std::span<std::byte> samples, std::span<std::byte> targets) {
    const int64_t all = whole(step, room->samples, room->targets).all;
    const int64_t count = std::clamp<int64_t>(all - part.begin, 0, part.count());
    const auto copy = [&](const std::vector<std::byte>& from, std::span<std::byte> to, std::size_t bytes) {
      std::memcpy(to.data(), from.data() + static_cast<std::size_t>(part.begin) * bytes,
                  static_cast<std::size_t>(count) * bytes);
    };
    copy(room->samples, samples, sample_bytes);
    copy(room->targets, targets, target_bytes);
    return FilledRows{count, all};
  };
}

BatchFill fill_from_source(BatchSource& source, int64_t batch, int64_t steps) {
  return [&source, most = batch, steps](int64_t step, std::span<std::byte> samples, std::span<std::byte> targets) {
    if (step >= steps) return FilledRows{};
    const int64_t rows = source.read(step, samples, targets);
    if (rows >= 1 && rows <= most) return FilledRows{rows, rows};
    throw Error("the batch of step " + std::to_string(step + 1) + " has " + std::to_string(rows) +
                    " rows; expected 1 to " + std::to_string(most) + ", as data.batch_size says",
                ExitCode::usage);
  };
}

}  // namespace gpunn::training
