#include "compiler/autodiff.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <map>
#include <set>

#include "ops/op.hpp"

namespace gpunn::compiler {

using graph::Attributes;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Value;
using graph::ValueId;

namespace {

class Differentiation {
 public:
  Differentiation(Graph& graph, const std::vector<ValueId>& targets) : graph_(graph) {
    for (const ValueId target : targets) targets_.insert(target);
    needed_ = targets_;
    // Whatever is computed from a target, or is a view of such a value, needs a gradient too. Gradients flow through
    // the first output of an op: no op has one for its others.
    for (const Node& node : graph.nodes()) {
      const bool reached = std::ranges::any_of(node.inputs, [&](ValueId input) { return needs(input); });
      if (reached && !node.outputs.empty()) needed_.insert(node.outputs.front());
    }
  }

  Graph& graph() { return graph_; }

  bool needs(ValueId id) const {
    if (needed_.contains(id)) return true;
    const ValueId base = graph_.value(id).view_of;
    return base != kNoValue && needs(base);
  }

  ValueId gradient(ValueId id) const {
    const auto found = gradients_.find(id);
    return found == gradients_.end() ? kNoValue : found->second;
  }

  // In the value's own dtype, which a formula in f32 need not have left it in.
  ValueId gradient_as_value(ValueId id) {
    const auto found = gradients_.find(id);
    if (found == gradients_.end()) return kNoValue;
    found->second = converted(found->second, graph_.value(id).type.dtype);
    return found->second;
  }

  void accumulate(ValueId id, ValueId gradient) {
    const Value& value = graph_.value(id);
    if (value.view_of != kNoValue && !targets_.contains(id)) {
      const Value& base = graph_.value(value.view_of);
      if (base.type.bytes() != value.type.bytes()) {
        throw Error("the gradient of '" + value.name + "', a part of '" + base.name + "', can't be formed");
      }
      const ValueId whole = value.view_of;  // no reference outlives a value that is added
      // A gradient may be of half precision where its value is f32 (see NodeGradient::output_gradient).
      const TensorType type{graph_.value(gradient).type.dtype, base.type.shape};
      accumulate(whole, graph_.add_view(base.name + ".gradient", gradient, type));
      return;
    }
    const auto [entry, first] = gradients_.try_emplace(id, gradient);
    if (first) return;
    const bool alike = graph_.value(entry->second).type == graph_.value(gradient).type;
    const DType type = alike ? graph_.value(gradient).type.dtype : DType::f32;
    const std::string name = value.name + ".gradient";
    const std::vector<ValueId> parts{converted(entry->second, type), converted(gradient, type)};
    entry->second = graph_.add1(GPUNN_OP_ADD, name, {}, parts);
  }

 private:
  ValueId converted(ValueId id, DType type) {
    if (graph_.value(id).type.dtype == type) return id;
    const std::string name = graph_.value(id).name;
    const ValueId result = graph_.add_value(name, {type, graph_.value(id).type.shape}, graph::Storage::arena);
    graph_.add_into(GPUNN_OP_COPY, name, {}, {id}, {result});
    return result;
  }

  Graph& graph_;
  std::set<ValueId> targets_, needed_;
  std::map<ValueId, ValueId> gradients_;
};

class NodeGradient : public ops::GradientContext {
 public:
  NodeGradient(Differentiation& differentiation, const Node& node)
      : GradientContext(differentiation.graph(), node), differentiation_(differentiation) {}

  // What flows through a conversion may be of either type.
  ValueId output_gradient(std::size_t i) const override {
    if (node().op == GPUNN_OP_COPY) return differentiation_.gradient(output(i));
    return differentiation_.gradient_as_value(output(i));
  }
  bool wants(std::size_t i) const override { return differentiation_.needs(input(i)); }
  void set(std::size_t i, ValueId gradient) override { differentiation_.accumulate(input(i), gradient); }

 private:
  Differentiation& differentiation_;
};

// Moves the nodes from `first` on, conversions of values that other nodes make, each behind the node that makes what it
// reads: so the memory of that is free sooner.
void move_behind_makers(Graph& graph, std::size_t first) {
  std::map<ValueId, std::size_t> makers;  // by root
  for (std::size_t n = 0; n < first; ++n) {
    for (const ValueId output : graph.nodes()[n].outputs) makers[graph.root(output)] = n;
  }
  std::vector<Node> nodes = std::move(graph.nodes());
  std::map<std::size_t, std::vector<std::size_t>> behind;
  for (std::size_t n = first; n < nodes.size(); ++n) behind[makers.at(graph.root(nodes[n].inputs[0]))].push_back(n);
  graph.nodes().clear();
  for (std::size_t n = 0; n < first; ++n) {
    graph.nodes().push_back(std::move(nodes[n]));
    for (const std::size_t conversion : behind[n]) graph.nodes().push_back(std::move(nodes[conversion]));
  }
}

}  // namespace

std::vector<ValueId> add_gradients(Graph& graph, ValueId loss, const std::vector<ValueId>& targets, ValueId scale) {
  if (!graph.value(loss).type.shape.empty()) {
    throw Error("a loss must be a scalar, '" + graph.value(loss).name + "' is " + to_string(graph.value(loss).type));
  }
  const gpunn_fill_attrs one{.struct_size = 0, .dtype = GPUNN_F32, .rank = 0, .reserved = 0, .dim = {}, .value = 1.0};
  if (scale == kNoValue) scale = graph.add1(GPUNN_OP_FILL, "loss.gradient", Attributes::of(one), {});
  return add_gradients(graph, {{loss, scale}}, targets);
}

std::vector<ValueId> add_gradients(Graph& graph, const std::vector<Cotangent>& cotangents,
                                   const std::vector<ValueId>& targets) {
  Differentiation differentiation(graph, targets);
  const std::vector<Node> forward = graph.nodes();  // a copy: the graph grows below
  for (const Cotangent& one : cotangents) differentiation.accumulate(one.value, one.gradient);

  for (std::size_t n = forward.size(); n-- > 0;) {
    const Node& node = forward[n];
    NodeGradient context(differentiation, node);
    if (context.output_gradient(0) == kNoValue) continue;
    bool wanted = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) wanted = wanted || context.wants(i);
    if (!wanted) continue;
    const ops::OpInfo& info = ops::op_info(node.op);
    if (info.steps) continue;
    if (info.gradient == nullptr) {
      throw Error("'" + node.name + "': " + std::string(info.name) +
                  " has no gradient, so nothing before it can train");
    }
    info.gradient(context);
  }

  std::vector<ValueId> result;
  result.reserve(targets.size());
  const std::size_t conversions = graph.nodes().size();
  for (const ValueId target : targets) result.push_back(differentiation.gradient_as_value(target));
  move_behind_makers(graph, conversions);
  return result;
}

}  // namespace gpunn::compiler
