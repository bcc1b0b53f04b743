#pragma once

#include <utility>
#include <vector>

#include "graph/expressions.hpp"

namespace gpunn::ops {

using graph::Expressions;
using graph::kNoValue;
using graph::ValueId;

// A node as its op's decomposition sees it: inputs and attributes, and formulas to write it in.
class Composition : public graph::Expressions {
 public:
  Composition(graph::Graph& graph, const graph::Node& node) : Expressions(graph, node.name), node_(node) {}

  ValueId in(std::size_t i) const { return node_.inputs[i]; }
  template <class Attrs>
  Attrs attrs() const {
    return node_.attrs.as<Attrs>();
  }

  // A number for each channel of x[N,C,...], or for each row of x[N,...], in a shape that broadcasts to x.
  ValueId by_channel(ValueId numbers, ValueId x);
  ValueId by_row(ValueId numbers, ValueId x);
  // The sum, or mean, over each row of x[N,...]: [N]. And over all but the channels: [C].
  ValueId row_sum(ValueId x);
  ValueId row_mean(ValueId x);
  ValueId channel_sum(ValueId x);
  // The number of elements of a row.
  double row_size(ValueId x) const;

 private:
  const graph::Node& node_;
};

// Appends the op's parts and returns a value for each of its outputs; empty if these shapes or attributes cannot be
// composed.
using Decomposition = std::vector<ValueId> (*)(Composition& composition);

}  // namespace gpunn::ops
