// Formulas that several layers use.
#pragma once

#include "graph/expressions.hpp"

namespace gpunn::nn {

graph::ValueId clamped(graph::Expressions& e, graph::ValueId x, double low, double high);
graph::ValueId positive(graph::Expressions& e, graph::ValueId x);  // max(x, 0)
graph::ValueId negative(graph::Expressions& e, graph::ValueId x);  // min(x, 0)
graph::ValueId absolute(graph::Expressions& e, graph::ValueId x);
graph::ValueId elu_of(graph::Expressions& e, graph::ValueId x, double alpha);
// slope * x + offset
graph::ValueId line_of(graph::Expressions& e, graph::ValueId x, double slope, double offset);
graph::ValueId hard_sigmoid_of(graph::Expressions& e, graph::ValueId x, double slope, double offset);
graph::ValueId softplus_of(graph::Expressions& e, graph::ValueId x);
graph::ValueId softsign_of(graph::Expressions& e, graph::ValueId x);

}  // namespace gpunn::nn
