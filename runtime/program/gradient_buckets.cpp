#include "program/gradient_buckets.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace gpunn::training {

using distributed::Share;

namespace {

// Nothing runs beside the sum of the first layers' gradients, which are done last: so their bucket is small.
constexpr int64_t kLastShare = 8;   // of a bucket, at most
constexpr int64_t kLeastShare = 4;  // of a bucket, for what is cut off in front of them

struct Bucket {
  Share share;
  std::size_t first_layer = 0;  // the lowest number of its parameters, whose gradients are done last
  bool last = false;            // it was cut off for being done last
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
    const bool few_left = (open.share.begin - begin) * kLastShare <= elements;
    const bool is_last = few_left && open.share.count() * kLeastShare >= elements && open.share.begin > begin;
    if (open.share.count() < elements && !is_last) continue;
    buckets.push_back(open);
    open = {{open.share.begin, open.share.begin}, std::numeric_limits<std::size_t>::max(), is_last};
  }
  if (open.share.count() > 0) buckets.push_back(open);
}

}  // namespace

int64_t bucket_elements(const Experiment& experiment) {
  return experiment.bucket_kib * 1024 / static_cast<int64_t>(sizeof(float));
}

std::vector<Share> gradient_buckets(const ParameterLayout& layout, int64_t elements) {
  // Weights and what does not decay lie apart, each in the order of the layers.
  std::vector<Bucket> pieces;
  for (const UpdateRange& range : layout.ranges) {
    cut(layout, range.begin, range.begin + range.decayed, elements, pieces);
    cut(layout, range.begin + range.decayed, range.end, elements, pieces);
  }
  std::ranges::sort(pieces, {}, [](const Bucket& bucket) { return bucket.share.begin; });
  std::vector<Bucket> buckets;
  for (const Bucket& piece : pieces) {
    const bool joins = !buckets.empty() && buckets.back().last == piece.last;
    if (joins && piece.share.end - buckets.back().share.begin <= elements) {
      buckets.back().share.end = piece.share.end;
      buckets.back().first_layer = std::min(buckets.back().first_layer, piece.first_layer);
    } else {
      buckets.push_back(piece);
    }
  }
  for (Bucket& bucket : buckets) {
    const auto up = [&](int64_t end) { return (end + layout.multiple - 1) / layout.multiple * layout.multiple; };
    bucket.share = {up(bucket.share.begin), up(bucket.share.end)};
  }
  std::ranges::stable_sort(buckets, std::ranges::greater(), &Bucket::first_layer);
  std::vector<Share> result;
  for (const Bucket& bucket : buckets) {
    if (bucket.share.count() > 0) result.push_back(bucket.share);
  }
  return result;
}

Share shard_of(const Share& bucket, Ranks ranks) {
  const int64_t size = bucket.count() / ranks.world;
  return {bucket.begin + ranks.rank * size, bucket.begin + (ranks.rank + 1) * size};
}

ParameterLayout sharded(const ParameterLayout& layout, const std::vector<Share>& buckets, Ranks ranks) {
  ParameterLayout result = layout;
  result.ranges.clear();
  int64_t kept = 0;
  for (const Share& bucket : buckets) {
    const Share own = shard_of(bucket, ranks);
    for (const UpdateRange& range : layout.ranges) {
      const int64_t begin = std::max(range.begin, own.begin), end = std::min(range.end, own.end);
      if (begin >= end) continue;
      UpdateRange part = range;
      part.begin = begin;
      part.end = end;
      part.state_begin = kept + begin - own.begin;
      part.decayed = std::clamp<int64_t>(range.begin + range.decayed - begin, 0, end - begin);
      result.ranges.push_back(part);
    }
    kept += own.count();
  }
  result.kept = kept;
  return result;
}

void add_gather(graph::Graph& g, const std::vector<Share>& buckets, Ranks ranks, graph::ValueId parameters) {
  const gpunn_all_reduce_attrs parts{.struct_size = 0, .parts = ranks.world};
  for (const Share& bucket : buckets) {
    const Share own = shard_of(bucket, ranks);
    const auto view = [&](int64_t rows, int64_t begin) {
      return g.add_view("parameters.shard", parameters, {DType::f32, {rows, own.count()}},
                        begin * static_cast<int64_t>(sizeof(float)));
    };
    g.add_into(GPUNN_OP_ALL_GATHER, "parameters", graph::Attributes::of(parts), {view(1, own.begin)},
               {view(ranks.world, bucket.begin)});
  }
}

void move_behind_inputs(graph::Graph& g, std::size_t first) {
  struct Bytes {
    graph::ValueId root;
    int64_t begin, end;
    bool overlaps(const Bytes& other) const { return root == other.root && begin < other.end && other.begin < end; }
  };
  const auto touched = [&](const graph::Node& node) {
    std::vector<Bytes> bytes;
    for (const auto* list : {&node.inputs, &node.outputs}) {
      for (const graph::ValueId id : *list) {
        const int64_t begin = g.root_offset(id);
        bytes.push_back({g.root(id), begin, begin + static_cast<int64_t>(g.value(id).type.bytes())});
      }
    }
    return bytes;
  };
  std::vector<graph::Node> moved(g.nodes().begin() + static_cast<std::ptrdiff_t>(first), g.nodes().end());
  g.nodes().resize(first);
  for (graph::Node& node : moved) {
    const std::vector<Bytes> own = touched(node);
    std::size_t at = g.nodes().size();
    while (at > 0) {
      const std::vector<Bytes> earlier = touched(g.nodes()[at - 1]);
      const bool meets = std::ranges::any_of(own, [&](const Bytes& one) {
        return std::ranges::any_of(earlier, [&](const Bytes& other) { return one.overlaps(other); });
      });
      if (meets) break;
      --at;
    }
    g.nodes().insert(g.nodes().begin() + static_cast<std::ptrdiff_t>(at), std::move(node));
  }
}

}  // namespace gpunn::training
