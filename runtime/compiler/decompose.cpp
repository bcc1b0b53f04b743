#include "compiler/decompose.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <limits>

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

// Appends the node, or what it comes to. The highest place in the chain that serves any of it; -1: no plugin serves
// all.
int append_served(Graph& graph, const Node& node, const Provider& provider) {
  const OpInfo& info = ops::op_info(node.op);
  const int level = provider(graph.signature(node));
  const std::size_t before = graph.nodes().size();
  if ((level < 0 || info.composite) && append_parts(graph, node)) {
    const std::vector<Node> parts(graph.nodes().begin() + static_cast<std::ptrdiff_t>(before), graph.nodes().end());
    graph.nodes().resize(before);
    bool served = true;
    int highest = std::numeric_limits<int>::max();
    for (const Node& part : parts) {
      const int of_part = append_served(graph, part, provider);
      served = served && of_part >= 0;
      highest = std::min(highest, chain_rank(of_part));
    }
    if (served && highest < chain_rank(level)) return highest;
    graph.nodes().resize(before);
  }
  graph.nodes().push_back(node);
  return level;
}

}  // namespace

void decompose_unserved(Graph& graph, const Provider& provider) {
  const std::vector<Node> nodes = std::move(graph.nodes());
  graph.nodes().clear();
  for (const Node& node : nodes) append_served(graph, node, provider);
}

}  // namespace gpunn::compiler
