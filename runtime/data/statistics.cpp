// summarize(): counts, ranges, means and deviations of a split.
#include "data/statistics.hpp"

#include <gpunn/data.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "data/rows.hpp"
#include "fields/kind.hpp"
#include "fields/moments.hpp"

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

}  // namespace

SplitSummary summarize(const Split& split, const Schema& schema) {
  SplitSummary summary;
  summary.rows = split.rows();
  for (const auto& [name, values] : split.fields) {
    const Field* field = schema.find(name);
    if (field == nullptr) continue;
    summary.fields.emplace(name, fields::kind_of(*field).summarize(*field, values, split.rows()));
  }
  if (split.source != nullptr) {
    summary.channels = summarize(data::evenly_spread(split, data::kMeasuredSamples), schema).channels;
    return summary;
  }
  if (split.sample_bytes().empty()) return summary;  // batches that come while training, or samples of many sizes
  if (split.samples.dtype != DType::u8) {
    for (const fields::Moments& one : fields::moments_of(split.samples, split.sample_bytes())) {
      summary.channels.push_back(fields::summary_of(one));
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
