#include "compiler/decompose.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::compiler {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using ops::OpInfo;

namespace {

class Parts {
 public:
  Parts(Graph& graph, std::size_t nodes, std::size_t values)
      : graph_(graph), nodes_(nodes), values_(static_cast<ValueId>(values)) {}

  // Whether one of the parts makes this value, in memory of its own.
  bool make(ValueId id) const {
    if (id < values_ || graph_.value(id).view_of != kNoValue) return false;
    return std::ranges::any_of(graph_.nodes().begin() + static_cast<std::ptrdiff_t>(nodes_), graph_.nodes().end(),
                               [&](const Node& node) { return std::ranges::count(node.outputs, id) != 0; });
  }

  void rename(ValueId from, ValueId to) {
    for (std::size_t n = nodes_; n < graph_.nodes().size(); ++n) {
      std::ranges::replace(graph_.nodes()[n].inputs, from, to);
      std::ranges::replace(graph_.nodes()[n].outputs, from, to);
    }
    for (ValueId id = values_; id < static_cast<ValueId>(graph_.values().size()); ++id) {
      if (graph_.value(id).view_of == from) graph_.value(id).view_of = to;
    }
  }

 private:
  Graph& graph_;
  std::size_t nodes_;  // those before the parts
  ValueId values_;
};

}  // namespace

bool append_parts(Graph& graph, const Node& node) {
  const OpInfo& info = ops::op_info(node.op);
  if (info.decompose == nullptr) return false;
  const std::size_t nodes = graph.nodes().size();
  Parts parts(graph, nodes, graph.values().size());
  ops::Composition composition(graph, node);
  std::vector<ValueId> made = info.decompose(composition);
  if (made.empty()) {
    graph.nodes().resize(nodes);
    return false;
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    const ValueId output = node.outputs[i];
    // What is changed in place may still be read by another part, until all of them have run.
    const bool in_place = std::ranges::count(node.inputs, output) != 0;
    if (!in_place && parts.make(made[i])) {
      parts.rename(made[i], output);
      std::ranges::replace(made, made[i], output);
    } else {
      graph.add_into(GPUNN_OP_COPY, node.name, {}, {made[i]}, {output});
    }
  }
  return true;
}

namespace {

class Decomposition {
 public:
  Decomposition(Graph& graph, const Provider& provider) : graph_(graph), provider_(provider) {}

  // Appends the node, or what it comes to. The highest place in the chain that serves any of it; -1: no plugin serves
  // all.
  int append(const Node& node) {
    const int level = provider_(graph_.signature(node));
    if (level != 0) {
      const int wide = append_in_f32(node, level);
      if (wide >= 0) return wide;
    }
    if (level < 0 || ops::op_info(node.op).composite) {
      const std::size_t before = graph_.nodes().size();
      const std::map<ValueId, ValueId> widened = widened_;
      if (append_parts(graph_, node)) {
        const int highest = replace_by_served(before);
        if (highest >= 0 && highest < chain_rank(level)) return highest;
        graph_.nodes().resize(before);
        widened_ = widened;
      }
    }
    graph_.nodes().push_back(node);
    return level;
  }

 private:
  // Replaces the nodes from `first` on by what they come to; returns what append() does.
  int replace_by_served(std::size_t first) {
    const std::vector<Node> parts(graph_.nodes().begin() + static_cast<std::ptrdiff_t>(first), graph_.nodes().end());
    graph_.nodes().resize(first);
    bool served = true;
    int highest = std::numeric_limits<int>::max();
    for (const Node& part : parts) {
      const int of_part = append(part);
      served = served && of_part >= 0;
      highest = std::min(highest, chain_rank(of_part));
    }
    return served ? highest : -1;
  }

  // A kernel without half precision that is higher in the chain than one with it keeps its op: what it reads and writes
  // is converted around it. -1, and nothing is appended, where there is no such kernel.
  int append_in_f32(const Node& node, int level) {
    const ops::Signature& signature = ops::op_info(node.op).row->signature;
    const std::size_t before = graph_.nodes().size();
    const std::map<ValueId, ValueId> widened = widened_;
    Node wide = node;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (is_convertible(signature.input(i), node.inputs[i])) wide.inputs[i] = widen(node.inputs[i]);
    }
    std::vector<std::pair<ValueId, ValueId>> narrowed;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!is_convertible(signature.outputs[i], node.outputs[i])) continue;
      wide.outputs[i] = f32_like(node.outputs[i]);
      narrowed.emplace_back(wide.outputs[i], node.outputs[i]);
    }
    if (wide.inputs == node.inputs && narrowed.empty()) return -1;
    const int of_wide = append(wide);
    for (const auto& [from, to] : narrowed) graph_.add_into(GPUNN_OP_COPY, node.name, {}, {from}, {to});
    const bool converts = std::ranges::all_of(
        graph_.nodes().begin() + static_cast<std::ptrdiff_t>(before), graph_.nodes().end(),
        [&](const Node& part) { return part.op != GPUNN_OP_COPY || provider_(graph_.signature(part)) >= 0; });
    if (converts && chain_rank(of_wide) < chain_rank(level)) return of_wide;
    graph_.nodes().resize(before);
    widened_ = widened;
    return -1;
  }

  bool is_convertible(const ops::Pattern& pattern, ValueId id) const {
    return pattern.floating && is_half(graph_.value(id).type.dtype);
  }

  ValueId f32_like(ValueId id) {
    return graph_.add_value(graph_.value(id).name + ".f32", {DType::f32, graph_.value(id).type.shape},
                            graph::Storage::arena);
  }

  // The value in f32. Of a value of the arena, which one op alone writes, the copy that another op needed serves too.
  ValueId widen(ValueId id) {
    const auto found = widened_.find(id);
    if (found != widened_.end()) return found->second;
    const ValueId result = f32_like(id);
    graph_.add_into(GPUNN_OP_COPY, graph_.value(result).name, {}, {id}, {result});
    if (graph_.value(id).storage == graph::Storage::arena) widened_.emplace(id, result);
    return result;
  }

  Graph& graph_;
  const Provider& provider_;
  std::map<ValueId, ValueId> widened_;
};

}  // namespace

void decompose_unserved(Graph& graph, const Provider& provider) {
  const std::vector<Node> nodes = std::move(graph.nodes());
  graph.nodes().clear();
  Decomposition decomposition(graph, provider);
  for (const Node& node : nodes) decomposition.append(node);
}

}  // namespace gpunn::compiler
