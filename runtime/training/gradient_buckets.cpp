#include "training/gradient_buckets.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace gpunn::training {

namespace {

struct Bucket {
  distributed::Share share;
  std::size_t first_layer = 0;  // the lowest number of its parameters, whose gradients are done last
};

// Of the parameters that lie in [begin, end), cut from the last layers on: what is left over is that of the first.
void cut(const ParameterLayout& layout, int64_t begin, int64_t end, int64_t elements, std::vector<Bucket>& buckets) {
  std::vector<std::size_t> inside;
  for (std::size_t i = 0; i < layout.offset.size(); ++i) {
    if (layout.offset[i] >= begin && layout.offset[i] < end) inside.push_back(i);
  }
  std::ranges::sort(inside, std::ranges::greater(), [&](std::size_t i) { return layout.offset[i]; });
  Bucket open{{end, end}, std::numeric_limits<std::size_t>::max()};
  for (const std::size_t i : inside) {
    open.share.begin = layout.offset[i];
    open.first_layer = std::min(open.first_layer, i);
    if (open.share.count() < elements) continue;
    buckets.push_back(open);
    open = {{open.share.begin, open.share.begin}, std::numeric_limits<std::size_t>::max()};
  }
  if (open.share.count() > 0) buckets.push_back(open);
}

}  // namespace

std::vector<distributed::Share> gradient_buckets(const ParameterLayout& layout, int64_t elements) {
  // Weights and what does not decay lie apart, each in the order of the layers.
  std::vector<Bucket> pieces;
  for (const UpdateRange& range : layout.ranges) {
    cut(layout, range.begin, range.begin + range.decayed, elements, pieces);
    cut(layout, range.begin + range.decayed, range.end, elements, pieces);
  }
  std::ranges::sort(pieces, {}, [](const Bucket& bucket) { return bucket.share.begin; });
  std::vector<Bucket> buckets;
  for (const Bucket& piece : pieces) {
    if (!buckets.empty() && piece.share.end - buckets.back().share.begin <= elements) {
      buckets.back().share.end = piece.share.end;
      buckets.back().first_layer = std::min(buckets.back().first_layer, piece.first_layer);
    } else {
      buckets.push_back(piece);
    }
  }
  std::ranges::stable_sort(buckets, std::ranges::greater(), &Bucket::first_layer);
  std::vector<distributed::Share> result;
  for (const Bucket& bucket : buckets) result.push_back(bucket.share);
  return result;
}

}  // namespace gpunn::training
