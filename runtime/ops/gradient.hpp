#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/expressions.hpp"

namespace gpunn::ops {

using graph::ValueId;

// A node as its op's gradient function sees it: the node, the gradients of its outputs, and a place for those of its
// inputs. compiler/autodiff.cpp implements it.
class GradientContext {
 public:
  GradientContext(graph::Graph& graph, const graph::Node& node) : graph_(graph), node_(node) {}
  virtual ~GradientContext() = default;
  GradientContext(const GradientContext&) = delete;
  GradientContext& operator=(const GradientContext&) = delete;

  graph::Graph& graph() const { return graph_; }
  const graph::Node& node() const { return node_; }
  ValueId input(std::size_t i) const { return node_.inputs[i]; }
  ValueId output(std::size_t i) const { return node_.outputs[i]; }
  const Shape& input_shape(std::size_t i) const { return graph_.value(input(i)).type.shape; }

  // The gradient of output i; every op asks for output 0 alone, which is always there.
  virtual ValueId output_gradient(std::size_t i = 0) const = 0;
  // Whether the gradient of input i is needed.
  virtual bool wants(std::size_t i) const = 0;
  virtual void set(std::size_t i, ValueId gradient) = 0;

  // "conv1.backward": the name of the ops that a gradient adds.
  std::string name() const { return node_.name + ".backward"; }
  // add1 with name().
  ValueId add(int32_t op, graph::Attributes attrs, std::vector<ValueId> inputs) const {
    return graph_.add1(op, name(), std::move(attrs), std::move(inputs));
  }
  // Formulas with name().
  graph::Expressions expressions() const { return {graph_, name()}; }

 private:
  graph::Graph& graph_;
  const graph::Node& node_;
};

// The op `backward` with the attributes of the node, from dy and y, or from dy and x.
template <int32_t backward>
void gradient_from_output(GradientContext& c) {
  c.set(0, c.add(backward, c.node().attrs, {c.output_gradient(), c.output(0)}));
}
template <int32_t backward>
void gradient_from_input(GradientContext& c) {
  c.set(0, c.add(backward, c.node().attrs, {c.output_gradient(), c.input(0)}));
}

}  // namespace gpunn::ops
