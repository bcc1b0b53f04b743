// summarize(): counts, ranges, means and deviations of a split.
#include "data/statistics.hpp"

#include <gpunn/data.hpp>

#include "data/rows/rows.hpp"
#include "fields/kind.hpp"
#include "fields/moments.hpp"

namespace gpunn {

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
  if (split.rows() > 0) summary.channels = fields::summaries_of(split.samples, split.sample_bytes());
  return summary;
}

}  // namespace gpunn
