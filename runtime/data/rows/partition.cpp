#include "data/rows/partition.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "data/rows/rows.hpp"
#include "data/synthetic/philox_source.hpp"

namespace gpunn::data {

namespace {

using Rows = std::vector<int64_t>;

// The rows of each class; of all together where they are not told apart.
std::vector<Rows> groups_of(const Split& split, const Share& share) {
  const std::vector<int32_t> classes = labels_of(split);
  const bool by_class = share.stratify && !classes.empty();
  std::vector<Rows> groups(by_class ? static_cast<std::size_t>(share.classes) : 1);
  for (int64_t row = 0; row < split.rows(); ++row) {
    const std::size_t group = by_class ? static_cast<std::size_t>(classes[static_cast<std::size_t>(row)]) : 0;
    groups[group].push_back(row);
  }
  return groups;
}

// How many rows each group gives: what its fraction has in whole rows, and one more where the fractions left over are
// largest, until the whole share is reached.
Rows counts_of(const std::vector<Rows>& groups, double fraction, std::size_t rows) {
  Rows counts;
  std::vector<std::pair<double, std::size_t>> left_over;
  int64_t missing = std::llround(fraction * static_cast<double>(rows));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const double exact = fraction * static_cast<double>(groups[i].size());
    counts.push_back(static_cast<int64_t>(exact));
    missing -= counts.back();
    left_over.emplace_back(exact - std::floor(exact), i);
  }
  std::stable_sort(left_over.begin(), left_over.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [part, group] : left_over) {
    const bool spare = counts[group] + 1 < static_cast<int64_t>(groups[group].size());
    if (missing <= 0) break;
    if (!spare) continue;
    ++counts[group];
    --missing;
  }
  return counts;
}

// The first `count` of a random order (Fisher and Yates) come first.
void draw(Rows& rows, int64_t count, PhiloxSource& random) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    std::swap(rows[i], rows[i + random.below(static_cast<uint32_t>(rows.size() - i))]);
  }
}

}  // namespace

Split take_share(Split& split, const Share& share) {
  if (share.fraction == 0) return split.samples.shape.empty() ? Split() : copy_rows(split, {});
  std::vector<Rows> groups = groups_of(split, share);
  const Rows counts = counts_of(groups, share.fraction, static_cast<std::size_t>(split.rows()));
  std::vector<bool> taken(static_cast<std::size_t>(split.rows()));
  PhiloxSource random(share.seed, share.stream, 0);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    draw(groups[g], counts[g], random);
    for (int64_t i = 0; i < counts[g]; ++i)
      taken[static_cast<std::size_t>(groups[g][static_cast<std::size_t>(i)])] = true;
  }
  Rows of_share, left;
  for (int64_t row = 0; row < split.rows(); ++row) {
    (taken[static_cast<std::size_t>(row)] ? of_share : left).push_back(row);
  }
  Split share_of = copy_rows(split, of_share);
  keep_rows(split, left);
  return share_of;
}

}  // namespace gpunn::data
