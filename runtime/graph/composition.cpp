#include "graph/composition.hpp"

#include <gpunn/ops.h>

#include <algorithm>

#include "graph/op_info.hpp"

namespace gpunn::graph {

ValueId Composition::by_channel(ValueId numbers, ValueId x) {
  Shape like(rank(x) - 1, 1);
  like[0] = shape(x)[1];
  return view(numbers, like);
}

ValueId Composition::by_row(ValueId numbers, ValueId x) {
  Shape like(rank(x), 1);
  like[0] = shape(x)[0];
  return view(numbers, like);
}

ValueId Composition::row_sum(ValueId x) { return sum(x, all(x) & ~1U, false); }
ValueId Composition::row_mean(ValueId x) { return mean(x, all(x) & ~1U, false); }
ValueId Composition::channel_sum(ValueId x) { return sum(x, all(x) & ~2U, false); }

double Composition::row_size(ValueId x) const {
  double size = 1;
  for (std::size_t i = 1; i < rank(x); ++i) size *= static_cast<double>(shape(x)[i]);
  return size;
}

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
  const OpInfo& info = op_info(node.op);
  if (info.decompose == nullptr) return false;
  const std::size_t nodes = graph.nodes().size();
  Parts parts(graph, nodes, graph.values().size());
  Composition composition(graph, node);
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

}  // namespace gpunn::graph
