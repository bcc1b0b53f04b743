#include "compiler/recompute.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "graph/expressions.hpp"

namespace gpunn::compiler {

using graph::Expressions;
using graph::kNoValue;
using graph::Node;
using graph::Storage;
using graph::Value;

namespace {

constexpr std::size_t kNoNode = static_cast<std::size_t>(-1);

std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

std::string recomputed_name(const std::string& name) { return name + std::string(kRecomputedSuffix); }

// Whether the op's other outputs do not depend on what it updates in place.
bool only_updates(int32_t op) { return op == GPUNN_OP_BATCH_NORM; }

class Recomputation {
 public:
  Recomputation(Graph& graph, NodeRange forward, std::size_t backward, const std::map<std::string, int>& stage_of)
      : graph_(graph),
        nodes_(std::move(graph.nodes())),
        backward_(backward),
        stages_(nodes_.size(), kKept),
        maker_(graph.values().size(), kNoNode) {
    graph_.nodes().clear();
    find_writers();
    find_stages(forward, stage_of);
    find_makers();
  }

  void run() {
    std::vector<Node> result(nodes_.begin(), nodes_.begin() + static_cast<std::ptrdiff_t>(backward_));
    for (std::size_t n = backward_; n < nodes_.size(); ++n) {
      Node node = nodes_[n];
      needed_.clear();
      for (const ValueId input : node.inputs) need(input);
      std::ranges::sort(needed_);
      for (const std::size_t again : needed_) append_copy(again);
      for (ValueId& input : node.inputs) input = again_or_kept(input);
      graph_.nodes().push_back(std::move(node));
    }
    std::ranges::move(graph_.nodes(), std::back_inserter(result));
    graph_.nodes() = std::move(result);
  }

 private:
  void find_writers() {
    writes_.resize(graph_.values().size(), 0);
    last_write_.resize(graph_.values().size(), kNoNode);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      for (const ValueId output : nodes_[n].outputs) {
        const std::size_t root = index(graph_.root(output));
        ++writes_[root];
        last_write_[root] = n;
      }
    }
  }

  // A conversion bears no layer's name. It has the stage of the layer behind it, for which it was made. Those of
  // parameters have none: backward nodes read them in any case.
  void find_stages(NodeRange forward, const std::map<std::string, int>& stage_of) {
    std::vector<bool> computed(graph_.values().size(), false);
    for (std::size_t n = 0; n < backward_; ++n) {
      for (const ValueId output : nodes_[n].outputs) computed[index(graph_.root(output))] = true;
    }
    const auto is_computed = [&](ValueId id) { return computed[index(graph_.root(id))]; };
    std::optional<int> behind;
    for (std::size_t n = forward.end(); n-- > forward.first;) {
      const Node& node = nodes_[n];
      const auto found = stage_of.find(node.name);
      const bool conversion = node.op == GPUNN_OP_COPY && found == stage_of.end();
      if (conversion && !std::ranges::any_of(node.inputs, is_computed)) continue;
      if (!conversion) behind = found == stage_of.end() ? kKept : found->second;
      if (behind && can_repeat(n)) stages_[n] = *behind;
    }
  }

  // Whether the node's inputs still hold the same when the gradients are computed, and nothing else is changed by it.
  bool can_repeat(std::size_t n) const {
    const Node& node = nodes_[n];
    for (const ValueId output : node.outputs) {
      const bool in_place = std::ranges::count(node.inputs, output) != 0;
      if (in_place && only_updates(node.op)) continue;
      const ValueId root = graph_.root(output);
      if (root != output || graph_.value(root).storage != Storage::arena || writes_[index(root)] != 1) return false;
    }
    return std::ranges::all_of(node.inputs, [&](ValueId input) {
      const std::size_t written = last_write_[index(graph_.root(input))];
      const bool in_place = std::ranges::count(node.outputs, input) != 0;
      return in_place || written == kNoNode || written < n;
    });
  }

  // By root, the node that computes it again; none for a value that is kept.
  void find_makers() {
    for (std::size_t n = 0; n < backward_; ++n) {
      if (stages_[n] == kKept) continue;
      for (const ValueId output : nodes_[n].outputs) {
        if (std::ranges::count(nodes_[n].inputs, output) == 0) maker_[index(output)] = n;
      }
    }
    for (std::size_t n = 0; n < backward_; ++n) {
      if (stages_[n] == kKept) continue;
      for (const ValueId input : nodes_[n].inputs) {
        const std::size_t root = index(graph_.root(input));
        if (maker_[root] != kNoNode && stages_[maker_[root]] != stages_[n]) maker_[root] = kNoNode;
      }
    }
  }

  std::size_t maker(ValueId id) const {
    const std::size_t root = index(graph_.root(id));
    return root < maker_.size() ? maker_[root] : kNoNode;
  }

  // Adds the nodes to `needed_` that have to be repeated first.
  void need(ValueId id) {
    std::vector<ValueId> open{id};
    while (!open.empty()) {
      const std::size_t node = maker(open.back());
      open.pop_back();
      if (node == kNoNode || !repeated_.insert(node).second) continue;
      needed_.push_back(node);
      open.insert(open.end(), nodes_[node].inputs.begin(), nodes_[node].inputs.end());
    }
  }

  void append_copy(std::size_t n) {
    const Node& original = nodes_[n];
    Node copy = original;
    copy.name = recomputed_name(original.name);
    for (std::size_t i = 0; i < original.inputs.size(); ++i) {
      const bool in_place = std::ranges::count(original.outputs, original.inputs[i]) != 0;
      copy.inputs[i] = in_place ? scratch(original.inputs[i], i) : again_or_kept(original.inputs[i]);
    }
    for (std::size_t i = 0; i < original.outputs.size(); ++i) {
      const auto input = std::ranges::find(original.inputs, original.outputs[i]);
      if (input != original.inputs.end()) {
        copy.outputs[i] = copy.inputs[static_cast<std::size_t>(input - original.inputs.begin())];
        continue;
      }
      const Value& value = graph_.value(original.outputs[i]);
      copy.outputs[i] = graph_.add_value(recomputed_name(value.name), value.type, Storage::arena);
      again_[original.outputs[i]] = copy.outputs[i];
    }
    graph_.nodes().push_back(std::move(copy));
  }

  // Memory for statistics that are updated for nothing: the same one for all inputs `place` of a size.
  ValueId scratch(ValueId like, std::size_t place) {
    const Shape shape = graph_.value(like).type.shape;
    const auto [found, first] = scratch_.try_emplace({shape, place}, kNoValue);
    if (first) {
      Expressions e(graph_, recomputed_name("statistics"));
      found->second = e.constant(0, shape);
    }
    return found->second;
  }

  // The value that was computed again, or a view of it; the value itself where it is kept.
  ValueId again_or_kept(ValueId id) {
    const ValueId root = graph_.root(id);
    const auto found = again_.find(root);
    if (found == again_.end()) return id;
    if (root == id) return found->second;
    const auto [view, first] = again_.try_emplace(id, kNoValue);
    if (first) {
      const Value value = graph_.value(id);
      view->second = graph_.add_view(recomputed_name(value.name), found->second, value.type, graph_.root_offset(id));
    }
    return view->second;
  }

  Graph& graph_;
  std::vector<Node> nodes_;  // before the pass
  std::size_t backward_;
  std::vector<int> stages_;              // by node
  std::vector<std::size_t> maker_;       // by value
  std::vector<int> writes_;              // by root
  std::vector<std::size_t> last_write_;  // by root
  std::set<std::size_t> repeated_;       // nodes
  std::vector<std::size_t> needed_;      // nodes
  std::map<ValueId, ValueId> again_;     // by value, or view, of the forward part
  std::map<std::pair<Shape, std::size_t>, ValueId> scratch_;
};

}  // namespace

void recompute_stages(Graph& graph, NodeRange forward, std::size_t backward,
                      const std::map<std::string, int>& stage_of) {
  if (stage_of.empty()) return;
  Recomputation(graph, forward, backward, stage_of).run();
}

}  // namespace gpunn::compiler
