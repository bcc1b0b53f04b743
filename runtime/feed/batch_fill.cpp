#include "feed/batch_fill.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
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
  struct From {
    const std::byte* values;
    int64_t numbers;                   // of a row
    std::size_t from_bytes, to_bytes;  // of a row
  };
  std::vector<From> from;
  for (const DeviceField& field : type.fields) {
    const FieldValues& values = split.fields.at(field.name);
    from.push_back({values.bytes().data(), field.row.elements(), field.row.elements() * size_of(values.type.dtype),
                    field.row.bytes()});
  }
  const int64_t numbers = split.samples.elements() / split.rows();
  const std::size_t from_bytes = split.samples.bytes() / static_cast<std::size_t>(split.rows());
  const std::size_t sample_bytes = type.samples.bytes() / static_cast<std::size_t>(type.rows());
  // Samples that are copied or converted are not worth a thread of their own.
  const bool made = split.source != nullptr || variation != nullptr;
  const int64_t at_once = made ? 1 : part.count();
  const auto index = std::make_shared<std::vector<int32_t>>(static_cast<std::size_t>(sampling.width()));
  return [=, &split](int64_t step, const BatchRoom& room) {
    const int64_t all = sampling.rows_of_step(step, *index);
    const int64_t count = std::clamp<int64_t>(all - part.begin, 0, part.count());
    const auto epoch = static_cast<uint64_t>(sampling.epoch_of(step));
    for_row_stretches(count, std::max<int64_t>(at_once, 1), [&](int64_t first, int64_t last) {
      for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
        const auto row = static_cast<std::size_t>((*index)[static_cast<std::size_t>(part.begin) + k]);
        const std::span<std::byte> to = room.samples.subspan(k * sample_bytes, sample_bytes);
        if (made) {  // of bytes
          data::read_sample(split, static_cast<int64_t>(row), variation, epoch, to);
        } else {
          standardisers.samples.convert(split.sample_bytes().data() + row * from_bytes, 0, numbers, to.data());
        }
        for (std::size_t i = 0; i < from.size(); ++i) {
          standardisers.fields[i].convert(from[i].values + row * from[i].from_bytes, 0, from[i].numbers,
                                          room.fields[i].data() + k * from[i].to_bytes);
        }
      }
    });
    return FilledRows{count, all};
  };
}

OwnBatchRoom::OwnBatchRoom(const SplitType& type, int64_t rows) {
  const auto count = static_cast<std::size_t>(rows);
  arrays_.emplace_back(count * (type.samples.bytes() / static_cast<std::size_t>(type.rows())));
  for (const DeviceField& field : type.fields) arrays_.emplace_back(count * field.row.bytes());
  room_.samples = arrays_.front();
  room_.fields.assign(arrays_.begin() + 1, arrays_.end());
}

BatchFill fill_from_part(BatchFill whole, const SplitType& type, int64_t rows, distributed::Share part) {
  const auto from = std::make_shared<OwnBatchRoom>(type, rows);
  return [=, whole = std::move(whole)](int64_t step, const BatchRoom& room) {
    const int64_t all = whole(step, from->room()).all;
    const int64_t count = std::clamp<int64_t>(all - part.begin, 0, part.count());
    const auto copy = [&](std::span<const std::byte> array, std::span<std::byte> to) {
      const std::size_t bytes = array.size() / static_cast<std::size_t>(rows);
      const auto rows_of_part =
          array.subspan(static_cast<std::size_t>(part.begin) * bytes, static_cast<std::size_t>(count) * bytes);
      std::ranges::copy(rows_of_part, to.begin());
    };
    copy(from->room().samples, room.samples);
    for (std::size_t i = 0; i < room.fields.size(); ++i) copy(from->room().fields[i], room.fields[i]);
    return FilledRows{count, all};
  };
}

BatchFill fill_from_source(BatchSource& source, const SplitType& type, const TensorType& samples, int64_t batch,
                           int64_t steps, const Standardisers& standardisers) {
  // Numbers that are wider than on the device need memory of their own.
  struct Wide {
    std::vector<std::vector<std::byte>> arrays;  // empty: the source writes to the device's room
  };
  const auto wide = std::make_shared<Wide>();
  std::vector<int64_t> numbers = {samples.elements() / type.rows()};
  for (const DeviceField& field : type.fields) numbers.push_back(field.row.elements());
  const auto standardiser = [&](std::size_t i) -> const fields::Standardiser& {
    return i == 0 ? standardisers.samples : standardisers.fields[i - 1];
  };
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool is_wide = standardiser(i).size() > static_cast<int64_t>(sizeof(float));
    wide->arrays.emplace_back(is_wide ? static_cast<std::size_t>(batch * numbers[i] * standardiser(i).size()) : 0);
  }
  return [=, &source, most = batch](int64_t step, const BatchRoom& room) {
    if (step >= steps) return FilledRows{};
    const auto place = [&](std::size_t i) { return i == 0 ? room.samples : room.fields[i - 1]; };
    BatchRoom from = room;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (!wide->arrays[i].empty()) (i == 0 ? from.samples : from.fields[i - 1]) = wide->arrays[i];
    }
    const int64_t rows = source.read(step, from);
    if (rows < 1 || rows > most) {
      throw Error("the batch of step " + std::to_string(step + 1) + " has " + std::to_string(rows) +
                      " rows; expected 1 to " + std::to_string(most) + ", as data.batch_size says",
                  ExitCode::usage);
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const fields::Standardiser& to_device = i == 0 ? standardisers.samples : standardisers.fields[i - 1];
      to_device.convert((i == 0 ? from.samples : from.fields[i - 1]).data(), 0, rows * numbers[i], place(i).data());
    }
    return FilledRows{rows, rows};
  };
}

}  // namespace gpunn::training
