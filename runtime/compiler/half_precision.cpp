#include "compiler/half_precision.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/output_types.hpp"

namespace gpunn::compiler {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

// What runs on tensor cores, and pays for converting what it reads.
bool is_product(int32_t op) {
  switch (op) {
    case GPUNN_OP_MATMUL:
    case GPUNN_OP_BATCH_MATMUL:
    case GPUNN_OP_ATTENTION:
    case GPUNN_OP_CONV2D:
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
      return true;
    default:
      return false;
  }
}

class Lowering {
 public:
  Lowering(Graph& graph, DType half) : graph_(graph), half_(half) {}

  // `wide`: it stays f32.
  void append(Node node, bool wide) {
    const ops::Signature& signature = graph::op_row(node.op).signature;
    bool lowered = is_product(node.op) && !wide;
    for (std::size_t i = 0; i < node.inputs.size() && !wide; ++i) {
      lowered = lowered || (signature.input(i).floating && type_of(node.inputs[i]) == half_);
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const DType now = type_of(node.inputs[i]);
      const DType wanted = lowered && signature.input(i).floating ? half_ : DType::f32;
      if (now != wanted && (now == half_ || now == DType::f32)) node.inputs[i] = converted(node.inputs[i], wanted);
    }
    for (std::size_t i = 0; i < node.outputs.size() && lowered; ++i) {
      if (signature.outputs[i].floating) store_in_half(node.outputs[i]);
    }
    graph_.nodes().push_back(std::move(node));
  }

  // The value in that type: itself, or a copy, of which there is one.
  ValueId converted(ValueId id, DType type) {
    if (type_of(id) == type) return id;
    const auto [found, first] = converted_.try_emplace({id, type}, kNoValue);
    if (!first) return found->second;
    const std::string name = graph_.value(id).name + "." + std::string(name_of(type));
    found->second = graph_.add_value(name, {type, graph_.value(id).type.shape}, graph::Storage::arena);
    graph_.add_into(GPUNN_OP_COPY, name, {}, {id}, {found->second});
    return found->second;
  }

 private:
  DType type_of(ValueId id) const { return graph_.value(id).type.dtype; }

  // The value and its views.
  void store_in_half(ValueId id) {
    graph_.value(id).type.dtype = half_;
    for (ValueId view = 0; view < static_cast<ValueId>(graph_.values().size()); ++view) {
      if (graph_.value(view).view_of != id) continue;
      graph_.value(view).view_offset /= 2;
      store_in_half(view);
    }
  }

  Graph& graph_;
  DType half_;
  std::map<std::pair<ValueId, DType>, ValueId> converted_;
};

// Lowers the nodes from `first` on.
Lowering lowered(Graph& graph, std::size_t first, DType half, const std::set<std::size_t>& wide) {
  const auto begin = graph.nodes().begin() + static_cast<std::ptrdiff_t>(first);
  const std::vector<Node> nodes(begin, graph.nodes().end());
  graph.nodes().resize(first);
  Lowering lowering(graph, half);
  for (std::size_t i = 0; i < nodes.size(); ++i) lowering.append(nodes[i], wide.contains(first + i));
  return lowering;
}

}  // namespace

ValueId use_half_precision(Graph& graph, std::size_t first, DType half, ValueId result,
                           const std::set<std::size_t>& wide) {
  return lowered(graph, first, half, wide).converted(result, DType::f32);
}

void use_half_precision(Graph& graph, std::size_t first, DType half, std::vector<ValueId>& results) {
  Lowering lowering = lowered(graph, first, half, {});
  for (ValueId& result : results) {
    if (graph.value(result).type.dtype == half) result = lowering.converted(result, DType::f32);
  }
}

}  // namespace gpunn::compiler
