// Arithmetic with broadcasting, and functions of one number.
#include <gpunn/ops.h>

#include <cmath>
#include <numbers>

#include "graph/expressions.hpp"
#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

Expressions expressions(GradientContext& c) { return {c.graph(), c.name()}; }

const Shape& input_shape(const GradientContext& c, std::size_t i) { return c.graph().value(c.input(i)).type.shape; }

// What reaches input i, whose elements were repeated.
void set_summed(GradientContext& c, std::size_t i, ValueId gradient) {
  const Shape shape = input_shape(c, i);
  c.set(i, expressions(c).sum_to(gradient, shape));
}

void add_gradient(GradientContext& c) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.wants(i)) set_summed(c, i, c.output_gradient());
  }
}

void sub_gradient(GradientContext& c) {
  if (c.wants(0)) set_summed(c, 0, c.output_gradient());
  if (c.wants(1)) set_summed(c, 1, expressions(c).scaled(c.output_gradient(), -1));
}

void mul_gradient(GradientContext& c) {
  Expressions e = expressions(c);
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.wants(i)) set_summed(c, i, e.mul(c.output_gradient(), c.input(1 - i)));
  }
}

void div_gradient(GradientContext& c) {
  Expressions e = expressions(c);
  const ValueId share = e.div(c.output_gradient(), c.input(1));
  if (c.wants(0)) set_summed(c, 0, share);
  if (c.wants(1)) set_summed(c, 1, e.scaled(e.mul(share, c.output(0)), -1));
}

// All of it to the operand that was chosen, to a where both are equal.
void extreme_gradient(GradientContext& c) {
  Expressions e = expressions(c);
  const ValueId dy = c.output_gradient();
  const bool larger = c.node().op == GPUNN_OP_MAXIMUM;
  const ValueId of_b = larger ? e.less(c.input(0), c.input(1)) : e.less(c.input(1), c.input(0));
  const ValueId nothing = e.constant(0);
  if (c.wants(0)) set_summed(c, 0, e.select(of_b, nothing, dy));
  if (c.wants(1)) set_summed(c, 1, e.select(of_b, dy, nothing));
}

// da = dy b a^(b-1); db = dy a^b log(a), and 0 where a is 0.
void pow_gradient(GradientContext& c) {
  Expressions e = expressions(c);
  const ValueId dy = c.output_gradient(), a = c.input(0), b = c.input(1);
  if (c.wants(0)) set_summed(c, 0, e.mul(dy, e.mul(b, e.pow(a, e.sub(b, e.constant(1))))));
  if (c.wants(1)) {
    const ValueId none = e.constant(0);
    const ValueId logarithm = e.select(e.equal(a, none), none, e.log(a));
    set_summed(c, 1, e.mul(e.mul(dy, c.output(0)), logarithm));
  }
}

void select_gradient(GradientContext& c) {
  Expressions e = expressions(c);
  const ValueId dy = c.output_gradient(), nothing = e.constant(0);
  if (c.wants(1)) set_summed(c, 1, e.select(c.input(0), dy, nothing));
  if (c.wants(2)) set_summed(c, 2, e.select(c.input(0), nothing, dy));
}

void exp_gradient(GradientContext& c) { c.set(0, expressions(c).mul(c.output_gradient(), c.output(0))); }
void log_gradient(GradientContext& c) { c.set(0, expressions(c).div(c.output_gradient(), c.input(0))); }

void sqrt_gradient(GradientContext& c) {
  Expressions e = expressions(c);
  c.set(0, e.scaled(e.div(c.output_gradient(), c.output(0)), 0.5));
}

// -dy y^3 / 2, as dy y (y y).
void rsqrt_gradient(GradientContext& c) {
  Expressions e = expressions(c);
  const ValueId y = c.output(0);
  c.set(0, e.scaled(e.mul(e.mul(c.output_gradient(), y), e.mul(y, y)), -0.5));
}

void erf_gradient(GradientContext& c) {
  Expressions e = expressions(c);
  const ValueId x = c.input(0);
  const ValueId bell = e.exp(e.scaled(e.mul(x, x), -1));
  c.set(0, e.scaled(e.mul(c.output_gradient(), bell), 2 * std::numbers::inv_sqrtpi));
}

std::string describe_expand(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_expand_attrs>();
  std::string text = "to [";
  for (int32_t i = 0; i < a.rank && i < GPUNN_MAX_RANK; ++i) text += (i == 0 ? "" : ", ") + std::to_string(a.dim[i]);
  return text + "]";
}

}  // namespace

std::vector<OpInfo> arithmetic_ops() {
  return {
      {.id = GPUNN_OP_ADD, .gradient = add_gradient},
      {.id = GPUNN_OP_SUB, .gradient = sub_gradient},
      {.id = GPUNN_OP_MUL, .gradient = mul_gradient},
      {.id = GPUNN_OP_DIV, .gradient = div_gradient},
      {.id = GPUNN_OP_MAXIMUM, .gradient = extreme_gradient},
      {.id = GPUNN_OP_MINIMUM, .gradient = extreme_gradient},
      {.id = GPUNN_OP_POW, .gradient = pow_gradient},
      {.id = GPUNN_OP_SELECT, .gradient = select_gradient},
      {.id = GPUNN_OP_EXPAND,
       .gradient = [](GradientContext& c) { set_summed(c, 0, c.output_gradient()); },
       .flops = no_flops,
       .describe = describe_expand},
      {.id = GPUNN_OP_EXP, .gradient = exp_gradient},
      {.id = GPUNN_OP_LOG, .gradient = log_gradient},
      {.id = GPUNN_OP_SQRT, .gradient = sqrt_gradient},
      {.id = GPUNN_OP_RSQRT, .gradient = rsqrt_gradient},
      {.id = GPUNN_OP_ERF, .gradient = erf_gradient},
  };
}

}  // namespace gpunn::graph
