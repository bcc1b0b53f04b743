#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::graph {

class Differentiation;

// What an op's gradient function sees: its node, the gradients that reach its outputs, and where to leave those of its
// inputs.
class GradientContext {
 public:
  GradientContext(Differentiation& differentiation, const Node& node)
      : differentiation_(differentiation), node_(node) {}

  Graph& graph() const;
  const Node& node() const { return node_; }
  ValueId input(std::size_t i) const { return node_.inputs[i]; }
  ValueId output(std::size_t i) const { return node_.outputs[i]; }
  // The gradient of output i; every op asks for output 0 alone, which is always there.
  ValueId output_gradient(std::size_t i = 0) const;
  // Whether anybody needs the gradient of input i.
  bool wants(std::size_t i) const;
  void set(std::size_t i, ValueId gradient);
  // "conv1.backward": the name of the ops that a gradient adds.
  std::string name() const { return node_.name + ".backward"; }
  // add1 with name().
  ValueId add(int32_t op, Attributes attrs, std::vector<ValueId> inputs) const;

 private:
  Differentiation& differentiation_;
  const Node& node_;
};

// Reverse-mode differentiation: appends the ops that compute d loss / d v for each v of `targets` and returns their
// values; kNoValue for a target that the loss does not depend on. loss is a scalar. Throws Error where the way from a
// target to the loss leads through an op without a gradient.
std::vector<ValueId> add_gradients(Graph& graph, ValueId loss, const std::vector<ValueId>& targets);

}  // namespace gpunn::graph
