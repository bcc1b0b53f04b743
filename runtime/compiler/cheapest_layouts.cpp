#include "compiler/cheapest_layouts.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>

#include "compiler/layout.hpp"
#include "compiler/min_cut.hpp"

namespace gpunn::compiler {

using graph::Graph;
using graph::Node;
using graph::OpSignature;
using graph::ValueId;

namespace {

using Cost = MinCut::Cost;

// Of a layout that a lower plugin serves, or to which the plugin gives a lower score: more than all copies take.
constexpr double kDislikedSeconds = 1;
// Of a copy that was not timed. Whatever is guessed, fewer and smaller copies are better.
constexpr double kGuessedBytesPerSecond = 1e12;
// The part of a copy's time that it costs a conversion to another dtype to change the layout as well. It only has to
// decide where all else is alike.
constexpr Cost kShareOfTransposing = 64;

Cost cost_of(double seconds) {
  constexpr double kPicoseconds = 1e12;
  return static_cast<Cost>(std::llround(std::clamp(seconds, 0.0, kDislikedSeconds) * kPicoseconds));
}

class LayoutCosts {
 public:
  LayoutCosts(const Graph& graph, const Offers& offers, const std::vector<bool>& stays_packed)
      : graph_(graph), offers_(offers), stays_packed_(stays_packed) {}

  std::vector<Layout> cheapest() {
    const std::vector<Node>& nodes = graph_.nodes();
    std::vector<std::vector<MinCut::Item>> readers(graph_.values().size());
    std::vector<const Node*> writers(graph_.values().size());
    stored_.resize(graph_.values().size(), packed_);
    for (const Node& node : nodes) {
      items_[&node] = item_of(node);
      for (const ValueId output : node.outputs) {
        const auto v = static_cast<std::size_t>(output);
        writers[v] = &node;
        if (!stays_packed_[v]) stored_[v] = is_copy(&node) ? stored_as(node.inputs[0]) : items_[&node];
      }
      if (is_copy(&node)) continue;
      for (const ValueId input : node.inputs) readers[static_cast<std::size_t>(input)].push_back(items_[&node]);
    }
    for (std::size_t v = 0; v < readers.size(); ++v) add_value(static_cast<ValueId>(v), writers[v], readers[v]);

    const std::vector<bool> is_set = cut_.solve();
    std::vector<Layout> result;
    result.reserve(nodes.size());
    for (const Node& node : nodes) result.push_back(is_set[items_[&node]] ? Layout::channels_last : Layout::packed);
    return result;
  }

 private:
  const TensorType& type_of(ValueId id) const { return graph_.value(id).type; }

  // A copy takes images of any layout.
  static bool is_copy(const Node* node) { return node != nullptr && node->op == GPUNN_OP_COPY; }

  // Set: the node's images lie channels-last.
  MinCut::Item item_of(const Node& node) {
    const OpSignature signature = graph_.signature(node);
    if (is_copy(&node) || !has_images(signature)) return packed_;
    const bool in_place = std::ranges::any_of(node.outputs, [&](ValueId output) {
      return has_layouts(type_of(output)) && std::ranges::count(node.inputs, output) != 0;
    });
    if (in_place) return packed_;
    const Offer last = offers_(in_layout(signature, Layout::channels_last));
    if (last.level < 0) return packed_;
    const Offer packed = offers_(in_layout(signature, Layout::packed));
    if (last.level != packed.level) return preferring(chain_rank(last.level) < chain_rank(packed.level));
    if (last.seconds > 0 && packed.seconds > 0) return cut_.add(cost_of(last.seconds), cost_of(packed.seconds));
    if (last.score != packed.score) return preferring(last.score > packed.score);
    return cut_.add(0, 0);
  }

  MinCut::Item preferring(bool channels_last) {
    const Cost disliked = cost_of(kDislikedSeconds);
    return cut_.add(channels_last ? 0 : disliked, channels_last ? disliked : 0);
  }

  // What it costs to have a value in each layout in which it is read.
  void add_value(ValueId id, const Node* writer, const std::vector<MinCut::Item>& readers) {
    if (!has_layouts(type_of(id))) return;
    const Cost copy = cost_of_copy(type_of(id));
    const bool stays = stays_packed_[static_cast<std::size_t>(id)];
    const MinCut::Item made_by = writer == nullptr ? packed_ : items_[writer];
    if (stays) cut_.add_difference(made_by, packed_, copy);
    if (readers.empty()) return;
    const MinCut::Item as_last = cut_.add(0, 0);    // set: it is there channels-last
    const MinCut::Item as_packed = cut_.add(0, 0);  // clear: it is there packed
    for (const MinCut::Item reader : readers) {
      cut_.add_difference(reader, as_last, MinCut::kNever);
      cut_.add_difference(as_packed, reader, MinCut::kNever);
    }
    const MinCut::Item stored = stored_as(id);
    if (is_copy(writer) && !stays) {
      // It is made in whatever layout is read, once for each, best in that of its source.
      cut_.add_difference(as_last, packed_, copy);
      cut_.add_difference(channels_last_, as_packed, copy);
      cut_.add_difference(as_last, stored, copy / kShareOfTransposing);
      cut_.add_difference(stored, as_packed, copy / kShareOfTransposing);
    } else {
      cut_.add_difference(as_last, stored, copy);
      cut_.add_difference(stored, as_packed, copy);
    }
  }

  // Set: the value lies channels-last. A copy lies as its source does.
  MinCut::Item stored_as(ValueId id) const { return stored_[static_cast<std::size_t>(id)]; }

  Cost cost_of_copy(const TensorType& type) {
    const auto key = std::tuple(type.dtype, type.shape);
    const auto found = copies_.find(key);
    if (found != copies_.end()) return found->second;
    OpSignature copy;
    copy.op = GPUNN_OP_COPY;
    copy.inputs = {{type.dtype, type.shape, Layout::packed}};
    copy.outputs = {{type.dtype, type.shape, Layout::channels_last}};
    const double timed = offers_(copy).seconds;
    const double seconds = timed > 0 ? timed : 2.0 * static_cast<double>(type.bytes()) / kGuessedBytesPerSecond;
    return copies_[key] = cost_of(seconds);
  }

  const Graph& graph_;
  const Offers& offers_;
  const std::vector<bool>& stays_packed_;
  MinCut cut_;
  const MinCut::Item packed_ = cut_.add(MinCut::kNever, 0);         // never set
  const MinCut::Item channels_last_ = cut_.add(0, MinCut::kNever);  // always set
  std::map<const Node*, MinCut::Item> items_;
  std::vector<MinCut::Item> stored_;  // by value
  std::map<std::tuple<DType, Shape>, Cost> copies_;
};

}  // namespace

std::vector<Layout> cheapest_layouts(const Graph& graph, const Offers& offers, const std::vector<bool>& stays_packed) {
  return LayoutCosts(graph, offers, stays_packed).cheapest();
}

}  // namespace gpunn::compiler
