// REDUCE, MEAN_ROWS and its backward, NORM.
#include <gpunn/ops.h>

#include "graph/expressions.hpp"
#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

// To each element its share: of a maximum the elements that are it share alike.
void reduce_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_reduce_attrs>();
  Expressions e(c.graph(), c.name());
  const Shape x = e.shape(c.input(0));
  Shape kept = x;
  double terms = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (((a.axes >> i) & 1U) == 0) continue;
    terms *= static_cast<double>(x[i]);
    kept[i] = 1;
  }
  const ValueId dy = e.view(c.output_gradient(), kept);
  if (a.kind == GPUNN_REDUCE_SUM) return c.set(0, e.expand(dy, x));
  if (a.kind == GPUNN_REDUCE_MEAN) return c.set(0, e.scaled(e.expand(dy, x), 1 / terms));
  const ValueId largest = e.equal(c.input(0), e.view(c.output(0), kept));
  c.set(0, e.mul(largest, e.div(dy, e.sum(largest, a.axes))));
}

void mean_rows_gradient(GradientContext& c) {
  const int64_t rows = c.graph().value(c.input(0)).type.shape[0];
  c.set(0, c.add(GPUNN_OP_MEAN_ROWS_BACKWARD,
                 Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows}),
                 {c.output_gradient(), c.input(1)}));
}

double input_flops(const OpSignature& s) { return static_cast<double>(s.inputs[0].elements()); }

double norm_flops(const OpSignature& s) { return 2.0 * static_cast<double>(s.inputs[0].elements()); }

std::string describe_reduce(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_reduce_attrs>();
  std::string text = a.kind == GPUNN_REDUCE_SUM ? "sum" : a.kind == GPUNN_REDUCE_MEAN ? "mean" : "max";
  text += " over";
  for (uint32_t i = 0; i < GPUNN_MAX_RANK; ++i) {
    if (((a.axes >> i) & 1U) != 0) text += " " + std::to_string(i);
  }
  return text;
}

std::vector<ValueId> norm(Composition& c) {
  const ValueId x = c.in(0);
  return {c.sqrt(c.sum(c.mul(x, x), c.all(x), false))};
}

}  // namespace

std::vector<OpInfo> reduction_ops() {
  return {
      {.id = GPUNN_OP_REDUCE, .gradient = reduce_gradient, .flops = input_flops, .describe = describe_reduce},
      {.id = GPUNN_OP_MEAN_ROWS, .gradient = mean_rows_gradient, .flops = input_flops},
      {.id = GPUNN_OP_NORM, .decompose = norm, .flops = norm_flops},
  };
}

}  // namespace gpunn::graph
