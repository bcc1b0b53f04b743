// summarize(): counts, ranges, means and deviations of a split.
#include "data/statistics.hpp"

#include <gpunn/data.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "data/rows.hpp"

namespace gpunn {

namespace {

// Of samples that are made when they are wanted: as many as tell the mean and the deviation to 1 %.
constexpr int64_t kMeasuredSamples = 2048;

// A split as [rows, channels, inner].
struct Extent {
  std::size_t rows, channels, inner;
};

Extent extent_of(const Split& split) {
  const Shape& shape = split.samples.shape;
  Extent extent{static_cast<std::size_t>(split.rows()), 1, 1};
  if (shape.size() > 1) extent.channels = static_cast<std::size_t>(shape[1]);
  for (std::size_t i = 2; i < shape.size(); ++i) extent.inner *= static_cast<std::size_t>(shape[i]);
  return extent;
}

// From how often each of the 256 values occurs: exact, whatever the number of pixels.
ChannelSummary of_bytes(const Split& split, const Extent& extent, std::size_t channel) {
  std::array<uint64_t, 256> count = {};
  for (std::size_t row = 0; row < extent.rows; ++row) {
    const std::byte* at = split.sample_bytes().data() + (row * extent.channels + channel) * extent.inner;
    for (std::size_t i = 0; i < extent.inner; ++i) ++count[std::to_integer<std::size_t>(at[i])];
  }
  ChannelSummary summary;
  double total = 0, sum = 0, squares = 0;
  bool any = false;
  for (std::size_t value = 0; value < count.size(); ++value) {
    if (count[value] == 0) continue;
    const auto v = static_cast<double>(value);
    const auto n = static_cast<double>(count[value]);
    if (!any) summary.min = v;
    any = true;
    summary.max = v;
    total += n;
    sum += n * v;
    squares += n * v * v;
  }
  if (!any) return summary;
  summary.mean = sum / total;
  summary.stddev = std::sqrt(std::max(0.0, squares / total - summary.mean * summary.mean));
  return summary;
}

// The deviation in a second pass, so that a large mean does not swallow it.
ChannelSummary of_floats(const Split& split, const Extent& extent, std::size_t channel) {
  const auto* values = reinterpret_cast<const float*>(split.sample_bytes().data());
  const auto for_each = [&](const auto& take) {
    for (std::size_t row = 0; row < extent.rows; ++row) {
      const float* at = values + (row * extent.channels + channel) * extent.inner;
      for (std::size_t i = 0; i < extent.inner; ++i) take(static_cast<double>(at[i]));
    }
  };
  const auto total = static_cast<double>(extent.rows * extent.inner);
  if (total == 0) return {};
  ChannelSummary summary{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 0, 0};
  double sum = 0, squares = 0;
  for_each([&](double v) {
    summary.min = std::min(summary.min, v);
    summary.max = std::max(summary.max, v);
    sum += v;
  });
  summary.mean = sum / total;
  for_each([&](double v) { squares += (v - summary.mean) * (v - summary.mean); });
  summary.stddev = std::sqrt(squares / total);
  return summary;
}

}  // namespace

SplitSummary summarize(const Split& split, int64_t classes, TargetKind targets) {
  SplitSummary summary;
  summary.rows = split.rows();
  summary.labels.resize(static_cast<std::size_t>(std::max<int64_t>(classes, 0)));
  for (const int32_t label : split.labels) {
    if (label >= 0 && label < classes) ++summary.labels[static_cast<std::size_t>(label)];
  }
  if (const auto field = split.fields.find(kTargetField);
      field != split.fields.end() && (targets == TargetKind::numbers || targets == TargetKind::labels)) {
    const Split of_targets{.samples = field->second.type, .values = field->second.values, .labels = {}, .fields = {}};
    const Extent columns = extent_of(of_targets);
    for (std::size_t c = 0; split.rows() > 0 && c < columns.channels; ++c) {
      const ChannelSummary column = of_floats(of_targets, columns, c);
      if (targets == TargetKind::numbers) summary.targets.push_back(column);
      // A 1 in each row that has the label.
      if (targets == TargetKind::labels) {
        summary.labels[c] = std::llround(column.mean * static_cast<double>(split.rows()));
      }
    }
  }
  if (split.source != nullptr) {
    summary.channels = summarize(data::evenly_spread(split, kMeasuredSamples), classes, targets).channels;
    return summary;
  }
  if (split.sample_bytes().empty()) return summary;  // batches that come while training, or samples of many sizes
  const Extent extent = extent_of(split);
  for (std::size_t c = 0; split.rows() > 0 && c < extent.channels; ++c) {
    summary.channels.push_back(split.samples.dtype == DType::u8 ? of_bytes(split, extent, c)
                                                                : of_floats(split, extent, c));
  }
  return summary;
}

namespace data {

void normalise_by_training_samples(Dataset& set) {
  const double unit = set.train.samples.dtype == DType::u8 ? 1.0 / 255 : 1.0;
  set.mean.clear();
  set.stddev.clear();
  for (const ChannelSummary& channel : summarize(set.train, set.classes).channels) {
    set.mean.push_back(channel.mean * unit);
    set.stddev.push_back(channel.stddev > 0 ? channel.stddev * unit : 1);  // a constant stays one
  }
}

}  // namespace data

}  // namespace gpunn
