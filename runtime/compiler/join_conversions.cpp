#include "compiler/join_conversions.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace gpunn::compiler {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Storage;
using graph::Value;
using graph::ValueId;

namespace {

constexpr int64_t kFullBytes = sizeof(float), kHalfBytes = 2;

// Elements between two parameters that are rather converted for nothing than left to a second COPY: 1.5 MB of traffic,
// which takes 0.4 us on a device with 4 TB/s, where a kernel takes 2 us at least.
constexpr int64_t kMostBetween = 1 << 18;

struct Conversion {
  std::size_t node = 0;
  ValueId to = kNoValue;
  int64_t begin = 0, end = 0;  // elements of the flat array
};

class Joining {
 public:
  Joining(Graph& graph, uint64_t alignment) : graph_(graph), alignment_(static_cast<int64_t>(alignment)) {}

  void run() {
    collect();
    for (auto& [source, conversions] : found_) {
      std::ranges::sort(conversions, {}, &Conversion::begin);
      std::size_t first = 0;
      int64_t end = conversions.front().end;
      for (std::size_t i = 1; i <= conversions.size(); ++i) {
        if (i < conversions.size() && conversions[i].begin - end <= kMostBetween) {
          end = std::max(end, conversions[i].end);
          continue;
        }
        join(source, {conversions.begin() + static_cast<std::ptrdiff_t>(first),
                      conversions.begin() + static_cast<std::ptrdiff_t>(i)});
        first = i;
        if (i < conversions.size()) end = conversions[i].end;
      }
    }
    replace_nodes();
  }

 private:
  using Source = std::pair<ValueId, DType>;

  void collect() {
    std::map<ValueId, int> writers;
    for (const Node& node : graph_.nodes()) {
      for (const ValueId output : node.outputs) ++writers[graph_.root(output)];
    }
    std::set<ValueId> changed;  // flat arrays that a node before has written
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (node.op == GPUNN_OP_COPY && !changed.contains(graph_.root(node.inputs[0])) &&
          writers[graph_.root(node.outputs[0])] == 1 && fits(node)) {
        const ValueId to = node.outputs[0];
        const int64_t begin = graph_.root_offset(node.inputs[0]) / kFullBytes;
        const int64_t size = element_count(graph_.value(to).type.shape);
        found_[{graph_.root(node.inputs[0]), graph_.value(to).type.dtype}].push_back({i, to, begin, begin + size});
      }
      for (const ValueId output : node.outputs) changed.insert(graph_.root(output));
    }
  }

  bool fits(const Node& node) const {
    const Value& from = graph_.value(node.inputs[0]);
    const Value& flat = graph_.value(graph_.root(node.inputs[0]));
    const Value& to = graph_.value(node.outputs[0]);
    const bool flat_array = flat.storage == Storage::parameters || flat.storage == Storage::optimizer;
    return flat_array && flat.type.dtype == DType::f32 && flat.type.shape.size() == 1 &&
           from.type.dtype == DType::f32 && is_half(to.type.dtype) && to.storage == Storage::arena &&
           to.view_of == kNoValue && !has_layouts(to.type) && element_count(to.type.shape) > 0 &&
           graph_.root_offset(node.inputs[0]) / kFullBytes * kHalfBytes % alignment_ == 0;
  }

  void join(const Source& source, const std::vector<Conversion>& conversions) {
    if (conversions.size() < 2) return;
    const auto [flat, half] = source;
    const int64_t begin = conversions.front().begin;
    const int64_t end = std::ranges::max(conversions, {}, &Conversion::end).end;
    const std::string name = graph_.value(flat).name + "." + std::string(name_of(half));
    ValueId from = flat;
    if (graph_.value(flat).type.shape[0] != end - begin) {
      from = graph_.add_view(name + ".from", flat, {DType::f32, {end - begin}}, begin * kFullBytes);
    }
    const ValueId joined = graph_.add_value(name, {half, {end - begin}}, Storage::arena);
    std::size_t at = conversions.front().node;
    for (const Conversion& one : conversions) {
      graph_.value(one.to).view_of = joined;
      graph_.value(one.to).view_offset = (one.begin - begin) * kHalfBytes;
      at = std::min(at, one.node);
      dropped_.insert(one.node);
    }
    graph_.add_into(GPUNN_OP_COPY, name, {}, {from}, {joined});
    added_[at] = std::move(graph_.nodes().back());
    graph_.nodes().pop_back();
  }

  void replace_nodes() {
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (const auto added = added_.find(i); added != added_.end()) nodes.push_back(std::move(added->second));
      if (!dropped_.contains(i)) nodes.push_back(std::move(graph_.nodes()[i]));
    }
    graph_.nodes() = std::move(nodes);
  }

  Graph& graph_;
  int64_t alignment_;
  std::map<Source, std::vector<Conversion>> found_;
  std::set<std::size_t> dropped_;      // nodes
  std::map<std::size_t, Node> added_;  // in front of which node
};

}  // namespace

void join_conversions(Graph& graph, uint64_t alignment) { Joining(graph, alignment).run(); }

}  // namespace gpunn::compiler
