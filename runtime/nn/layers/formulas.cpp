#include "nn/layers/formulas.hpp"

#include <gpunn/ops.h>

namespace gpunn::nn {

using graph::Expressions;
using graph::ValueId;

ValueId clamped(Expressions& e, ValueId x, double low, double high) {
  const gpunn_clamp_attrs attrs{.struct_size = 0, .low = static_cast<float>(low), .high = static_cast<float>(high)};
  return e.op(GPUNN_OP_CLAMP, {x}, graph::Attributes::of(attrs));
}

ValueId positive(Expressions& e, ValueId x) { return e.maximum(x, e.constant(0)); }
ValueId negative(Expressions& e, ValueId x) { return e.minimum(x, e.constant(0)); }
ValueId absolute(Expressions& e, ValueId x) { return e.maximum(x, e.scaled(x, -1)); }

ValueId elu_of(Expressions& e, ValueId x, double alpha) {
  const ValueId below_zero = e.sub(e.exp(negative(e, x)), e.constant(1));
  return e.add(positive(e, x), e.scaled(below_zero, alpha));
}

ValueId line_of(Expressions& e, ValueId x, double slope, double offset) {
  return e.add(e.scaled(x, slope), e.constant(offset));
}

ValueId hard_sigmoid_of(Expressions& e, ValueId x, double slope, double offset) {
  return clamped(e, line_of(e, x, slope, offset), 0, 1);
}

// Without an overflow: the exponent is never above 0.
ValueId softplus_of(Expressions& e, ValueId x) {
  const ValueId small = e.exp(e.scaled(absolute(e, x), -1));
  return e.add(positive(e, x), e.log(e.add(small, e.constant(1))));
}

ValueId softsign_of(Expressions& e, ValueId x) { return e.div(x, e.add(absolute(e, x), e.constant(1))); }

}  // namespace gpunn::nn
