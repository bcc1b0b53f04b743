#include "training/batch_fill.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/parallel.hpp"
#include "data/variation/varied_sample.hpp"

namespace gpunn::training {

BatchFill fill_from_split(const Split& split, const SplitType& type, const Sampling& sampling,
                          const Standardisers& standardisers, const data::SampleVariation* variation) {
  return fill_from_split_part(split, type, sampling, {0, sampling.width()}, standardisers, variation);
}

BatchFill fill_from_split_part(const Split& split, const SplitType& type, const Sampling& sampling,
                               distributed::Share part, const Standardisers& standardisers,
                               const data::SampleVariation* variation) {
  const FieldValues& values = split.fields.at(type.field());
  const std::byte* const targets = values.bytes().data();
  const std::size_t word = size_of(values.type.dtype);
  const int64_t words = type.words_of_row();
  const std::size_t target_bytes = static_cast<std::size_t>(words) * sizeof(int32_t);
  const int64_t numbers = split.samples.elements() / split.rows();
  const std::size_t from_bytes = split.samples.bytes() / static_cast<std::size_t>(split.rows());
  const std::size_t sample_bytes = type.samples.bytes() / static_cast<std::size_t>(type.rows());
  // Samples that are copied or converted are not worth a thread of their own.
  const bool made = split.source != nullptr || variation != nullptr;
  const int64_t at_once = made ? 1 : part.count();
  const auto index = std::make_shared<std::vector<int32_t>>(static_cast<std::size_t>(sampling.width()));
  return [=, &split](int64_t step, std::span<std::byte> to_samples, std::span<std::byte> to_targets) {
    const int64_t all = sampling.rows_of_step(step, *index);
    const int64_t count = std::clamp<int64_t>(all - part.begin, 0, part.count());
    const auto epoch = static_cast<uint64_t>(sampling.epoch_of(step));
    for_row_stretches(count, std::max<int64_t>(at_once, 1), [&](int64_t first, int64_t last) {
      for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
        const auto row = static_cast<std::size_t>((*index)[static_cast<std::size_t>(part.begin) + k]);
        const std::span<std::byte> to = to_samples.subspan(k * sample_bytes, sample_bytes);
        if (made) {  // of bytes
          data::read_sample(split, static_cast<int64_t>(row), variation, epoch, to);
        } else {
          standardisers.samples.convert(split.sample_bytes().data() + row * from_bytes, 0, numbers, to.data());
        }
        standardisers.targets.convert(targets + row * static_cast<std::size_t>(words) * word, 0, words,
                                      to_targets.data() + k * target_bytes);
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

BatchFill fill_from_source(BatchSource& source, const SplitType& type, const TensorType& samples, int64_t batch,
                           int64_t steps, const Standardisers& standardisers) {
  const int64_t numbers = samples.elements() / type.rows(), words = type.words_of_row();
  struct Room {
    std::vector<std::byte> samples, targets;
  };
  const auto room = std::make_shared<Room>();
  // What is wider than on the device needs room of its own.
  const std::size_t word = type.targets > 0 ? size_of(source.target_type()) : sizeof(int32_t);
  if (samples.dtype == DType::f64) room->samples.resize(static_cast<std::size_t>(batch * numbers) * sizeof(double));
  if (word > sizeof(int32_t)) room->targets.resize(static_cast<std::size_t>(batch * words) * word);
  return [=, &source, most = batch](int64_t step, std::span<std::byte> to_samples, std::span<std::byte> to_targets) {
    if (step >= steps) return FilledRows{};
    const std::span<std::byte> from = room->samples.empty() ? to_samples : std::span(room->samples);
    const std::span<std::byte> from_targets = room->targets.empty() ? to_targets : std::span(room->targets);
    const int64_t rows = source.read(step, from, from_targets);
    if (rows < 1 || rows > most) {
      throw Error("the batch of step " + std::to_string(step + 1) + " has " + std::to_string(rows) +
                      " rows; expected 1 to " + std::to_string(most) + ", as data.batch_size says",
                  ExitCode::usage);
    }
    standardisers.samples.convert(from.data(), 0, rows * numbers, to_samples.data());
    standardisers.targets.convert(from_targets.data(), 0, rows * words, to_targets.data());
    return FilledRows{rows, rows};
  };
}

}  // namespace gpunn::training
