// SCALE, AXPBY, CLAMP, COPY and FILL.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

void scale_gradient(GradientContext& c) { c.set(0, c.add(GPUNN_OP_SCALE, c.node().attrs, {c.output_gradient()})); }

void axpby_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_axpby_attrs>();
  for (std::size_t i = 0; i < 2; ++i) {
    if (!c.wants(i)) continue;
    const gpunn_scale_attrs factor{.struct_size = 0, .factor = i == 0 ? a.alpha : a.beta};
    c.set(i, c.add(GPUNN_OP_SCALE, Attributes::of(factor), {c.output_gradient()}));
  }
}

// To what was left as it is.
void clamp_gradient(GradientContext& c) {
  Expressions e(c.graph(), c.name());
  c.set(0, e.select(e.equal(c.input(0), c.output(0)), c.output_gradient(), e.constant(0)));
}

double axpby_flops(const OpSignature& s) { return 3.0 * static_cast<double>(s.outputs[0].elements()); }

std::string describe_scale(const Attributes& attrs) {
  std::ostringstream text;
  text << "factor " << attrs.as<gpunn_scale_attrs>().factor;
  return text.str();
}

std::string describe_axpby(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_axpby_attrs>();
  std::ostringstream text;
  text << a.alpha << " a + " << a.beta << " b";
  return text.str();
}

std::string describe_clamp(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_clamp_attrs>();
  std::ostringstream text;
  text << a.low << " to " << a.high;
  return text.str();
}

std::string describe_fill(const Attributes& attrs) {
  std::ostringstream text;
  text << "value " << attrs.as<gpunn_fill_attrs>().value;
  return text.str();
}

std::vector<ValueId> scale(Composition& c) { return {c.mul(c.in(0), c.constant(c.attrs<gpunn_scale_attrs>().factor))}; }

std::vector<ValueId> axpby(Composition& c) {
  const auto a = c.attrs<gpunn_axpby_attrs>();
  return {c.add(c.scaled(c.in(0), a.alpha), c.scaled(c.in(1), a.beta))};
}

std::vector<ValueId> clamp(Composition& c) {
  const auto a = c.attrs<gpunn_clamp_attrs>();
  return {c.minimum(c.maximum(c.in(0), c.constant(a.low)), c.constant(a.high))};
}

}  // namespace

std::vector<OpInfo> elementwise_ops() {
  return {
      {.id = GPUNN_OP_SCALE, .gradient = scale_gradient, .decompose = scale, .describe = describe_scale},
      {.id = GPUNN_OP_AXPBY,
       .gradient = axpby_gradient,
       .decompose = axpby,
       .flops = axpby_flops,
       .describe = describe_axpby},
      {.id = GPUNN_OP_CLAMP, .gradient = clamp_gradient, .decompose = clamp, .describe = describe_clamp},
      {.id = GPUNN_OP_COPY, .gradient = [](GradientContext& c) { c.set(0, c.output_gradient()); }, .flops = no_flops},
      {.id = GPUNN_OP_FILL, .flops = no_flops, .describe = describe_fill},
  };
}

}  // namespace gpunn::graph
