// summarize(): counts, ranges, means and deviations of a split.
#include "data/statistics.hpp"

#include <gpunn/data.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "data/rows.hpp"

namespace gpunn {

namespace {

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

ChannelSummary summary_of(const data::Moments& moments) {
  return {.min = moments.low, .max = moments.high, .mean = moments.mean(), .stddev = moments.stddev};
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
    const std::vector<data::Moments> columns = data::moments_of(field->second.type, field->second.values);
    for (std::size_t c = 0; split.rows() > 0 && c < columns.size(); ++c) {
      if (targets == TargetKind::numbers) summary.targets.push_back(summary_of(columns[c]));
      // A 1 in each row that has the label.
      if (targets == TargetKind::labels) {
        summary.labels[c] = std::llround(columns[c].mean() * static_cast<double>(split.rows()));
      }
    }
  }
  if (split.source != nullptr) {
    summary.channels = summarize(data::evenly_spread(split, data::kMeasuredSamples), classes, targets).channels;
    return summary;
  }
  if (split.sample_bytes().empty()) return summary;  // batches that come while training, or samples of many sizes
  if (split.samples.dtype != DType::u8) {
    for (const data::Moments& one : data::moments_of(split.samples, split.sample_bytes())) {
      summary.channels.push_back(summary_of(one));
    }
    return summary;
  }
  const Extent extent = extent_of(split);
  for (std::size_t c = 0; split.rows() > 0 && c < extent.channels; ++c) {
    summary.channels.push_back(of_bytes(split, extent, c));
  }
  return summary;
}

}  // namespace gpunn
