// LOCAL_RESPONSE_NORM and its backward.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

void response_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, c.node().attrs, {c.output_gradient(), c.input(0)}));
}

double window_of(const OpSignature& s) { return s.attrs.as<gpunn_local_response_norm_attrs>().size; }

// A power is counted as ten operations.
double response_flops(const OpSignature& s) {
  return (2 * window_of(s) + 13) * static_cast<double>(s.inputs[0].elements());
}
double response_backward_flops(const OpSignature& s) {
  return (3 * window_of(s) + 19) * static_cast<double>(s.inputs[0].elements());
}

std::string describe_response(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_local_response_norm_attrs>();
  std::ostringstream text;
  text << "size " << a.size << ", alpha " << a.alpha << ", beta " << a.beta << ", k " << a.k;
  return text.str();
}

using Response = gpunn_local_response_norm_attrs;

// The mean over a window of channels, whose numbers outside [0, C) are 0: from c - before to c - before + size - 1.
ValueId window_mean(Composition& c, ValueId x, int32_t size, int32_t before) {
  const Shape shape = c.shape(x);
  const int32_t pad = size / 2;
  const gpunn_pool2d_attrs attrs{.struct_size = 0,
                                 .window = {size, 1},
                                 .stride = {1, 1},
                                 .pad = {pad, 0},
                                 .count_padding = 1,
                                 .input_size = {0, 0}};
  const Shape planes{shape[0], 1, shape[1], element_count(shape) / (shape[0] * shape[1])};
  const ValueId pooled = c.op(GPUNN_OP_AVG_POOL2D, {c.view(x, planes)}, Attributes::of(attrs));
  // A window of even size begins at one place more than there are channels.
  const ValueId kept = c.shape(pooled)[2] == shape[1] ? pooled : c.slice(pooled, 2, pad - before, shape[1]);
  return c.view(kept, shape);
}

// k + alpha / size * the sum of squares in the window.
ValueId response_base(Composition& c, ValueId x, const Response& a) {
  return c.add(c.scaled(window_mean(c, c.mul(x, x), a.size, a.size / 2), a.alpha), c.constant(a.k));
}

std::vector<ValueId> response(Composition& c) {
  const auto a = c.attrs<Response>();
  const ValueId x = c.in(0);
  if (element_count(c.shape(x)) == 0) return {};
  return {c.mul(x, c.pow(response_base(c, x, a), c.constant(-a.beta)))};
}

// dx = dy base^-beta - 2 alpha beta / size x times the sum of dy x base^(-beta-1) over the channels whose window x is
// in.
std::vector<ValueId> response_backward(Composition& c) {
  const auto a = c.attrs<Response>();
  const ValueId dy = c.in(0), x = c.in(1);
  if (element_count(c.shape(x)) == 0) return {};
  const ValueId base = response_base(c, x, a);
  const ValueId power = c.pow(base, c.constant(-a.beta));
  const ValueId terms = c.div(c.mul(c.mul(dy, x), power), base);
  const ValueId others = c.scaled(window_mean(c, terms, a.size, (a.size - 1) / 2), 2.0 * a.alpha * a.beta);
  return {c.sub(c.mul(dy, power), c.mul(x, others))};
}

}  // namespace

std::vector<OpInfo> local_response_norm_ops() {
  return {
      {.id = GPUNN_OP_LOCAL_RESPONSE_NORM,
       .gradient = response_gradient,
       .decompose = response,
       .flops = response_flops,
       .describe = describe_response},
      {.id = GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD,
       .decompose = response_backward,
       .flops = response_backward_flops,
       .describe = describe_response},
  };
}

}  // namespace gpunn::graph
