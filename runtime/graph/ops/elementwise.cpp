// ADD, SCALE, AXPBY, CLAMP, COPY and FILL.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

Types infer_add(const Attributes&, Inputs in) {
  require_dtype(in[0], DType::f32, "a");
  require_same(in[0], in[1], "a", "b");
  return {in[0]};
}

Types infer_unary(const Attributes&, Inputs in) {
  require_dtype(in[0], DType::f32, "x");
  return {in[0]};
}

Types infer_clamp(const Attributes& attrs, Inputs in) {
  require_dtype(in[0], DType::f32, "x");
  const auto a = attrs.as<gpunn_clamp_attrs>();
  // Neither may be NaN.
  require(a.low <= a.high, "low " + std::to_string(a.low) + " must not be above high " + std::to_string(a.high));
  return {in[0]};
}

Types infer_copy(const Attributes&, Inputs in) { return {in[0]}; }

Types infer_fill(const Attributes& attrs, Inputs) {
  const auto a = attrs.as<gpunn_fill_attrs>();
  require(a.rank >= 0 && a.rank <= GPUNN_MAX_RANK, "rank " + std::to_string(a.rank) + " is not between 0 and 8");
  TensorType type{static_cast<DType>(a.dtype), Shape(a.dim, a.dim + a.rank)};
  require(size_of(type.dtype) > 0, "unknown dtype " + std::to_string(a.dtype));
  return {type};
}

void add_gradient(GradientContext& c) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.wants(i)) c.set(i, c.output_gradient());
  }
}

void scale_gradient(GradientContext& c) { c.set(0, c.add(GPUNN_OP_SCALE, c.node().attrs, {c.output_gradient()})); }

void axpby_gradient(GradientContext& c) {
  const auto a = c.node().attrs.as<gpunn_axpby_attrs>();
  for (std::size_t i = 0; i < 2; ++i) {
    if (!c.wants(i)) continue;
    const gpunn_scale_attrs factor{.struct_size = 0, .factor = i == 0 ? a.alpha : a.beta};
    c.set(i, c.add(GPUNN_OP_SCALE, Attributes::of(factor), {c.output_gradient()}));
  }
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

}  // namespace

std::vector<OpInfo> elementwise_ops() {
  return {
      {.id = GPUNN_OP_ADD,
       .name = "ADD",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_add,
       .may_alias = {{0, 1}},
       .gradient = add_gradient},
      {.id = GPUNN_OP_SCALE,
       .name = "SCALE",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_unary,
       .may_alias = {{0}},
       .gradient = scale_gradient,
       .describe = describe_scale},
      {.id = GPUNN_OP_AXPBY,
       .name = "AXPBY",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_add,
       .may_alias = {{0, 1}},
       .gradient = axpby_gradient,
       .flops = axpby_flops,
       .describe = describe_axpby},
      {.id = GPUNN_OP_CLAMP,
       .name = "CLAMP",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_clamp,
       .may_alias = {{0}},
       .describe = describe_clamp},
      {.id = GPUNN_OP_COPY,
       .name = "COPY",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_copy,
       .gradient = [](GradientContext& c) { c.set(0, c.output_gradient()); },
       .flops = no_flops},
      {.id = GPUNN_OP_FILL,
       .name = "FILL",
       .min_inputs = 0,
       .max_inputs = 0,
       .infer = infer_fill,
       .flops = no_flops,
       .describe = describe_fill},
  };
}

}  // namespace gpunn::graph
