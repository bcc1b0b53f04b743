// BCE_LOGITS_LOSS, HUBER_LOSS and their backwards: means over a row of a function of each element and its target.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

template <int32_t backward>
void gradient(GradientContext& c) {
  if (c.wants(1)) throw Error("'" + c.node().name + "': a loss has no gradient for its target");
  c.set(0, c.add(backward, c.node().attrs, {c.output_gradient(), c.input(0), c.input(1)}));
}

double bce_flops(const OpSignature& s) { return 6.0 * static_cast<double>(s.inputs.back().elements()); }
double huber_flops(const OpSignature& s) { return 4.0 * static_cast<double>(s.inputs.back().elements()); }

std::string describe_huber(const Attributes& attrs) {
  std::ostringstream text;
  text << "delta " << attrs.as<gpunn_huber_attrs>().delta;
  return text.str();
}

ValueId magnitude(Composition& c, ValueId x) { return c.maximum(x, c.scaled(x, -1)); }

// dloss / D for each element of x[N,...], D elements a row.
ValueId share_of(Composition& c, ValueId dloss, ValueId x) {
  return c.div(c.by_row(dloss, x), c.constant(c.row_size(x)));
}

std::vector<ValueId> bce(Composition& c) {
  const ValueId x = c.in(0), target = c.in(1);
  const ValueId tail = c.log(c.add(c.constant(1), c.exp(c.scaled(magnitude(c, x), -1))));
  return {c.row_mean(c.add(c.sub(c.maximum(x, c.constant(0)), c.mul(x, target)), tail))};
}

std::vector<ValueId> bce_backward(Composition& c) {
  const ValueId x = c.in(1);
  return {c.mul(share_of(c, c.in(0), x), c.sub(c.op(GPUNN_OP_SIGMOID, {x}), c.in(2)))};
}

std::vector<ValueId> huber(Composition& c) {
  const float delta = c.attrs<gpunn_huber_attrs>().delta;
  const ValueId difference = c.sub(c.in(0), c.in(1)), distance = magnitude(c, difference), limit = c.constant(delta);
  const ValueId square = c.scaled(c.mul(difference, difference), 0.5);
  const ValueId straight = c.scaled(c.sub(distance, c.constant(delta / 2)), delta);
  return {c.row_mean(c.select(c.less_equal(distance, limit), square, straight))};
}

std::vector<ValueId> huber_backward(Composition& c) {
  const float delta = c.attrs<gpunn_huber_attrs>().delta;
  const ValueId x = c.in(1), difference = c.sub(x, c.in(2));
  const ValueId slope = c.minimum(c.maximum(difference, c.constant(-delta)), c.constant(delta));
  return {c.mul(share_of(c, c.in(0), x), slope)};
}

}  // namespace

std::vector<OpInfo> pointwise_loss_ops() {
  return {
      {.id = GPUNN_OP_BCE_LOGITS_LOSS,
       .gradient = gradient<GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD>,
       .decompose = bce,
       .flops = bce_flops},
      {.id = GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, .decompose = bce_backward, .flops = bce_flops},
      {.id = GPUNN_OP_HUBER_LOSS,
       .gradient = gradient<GPUNN_OP_HUBER_LOSS_BACKWARD>,
       .decompose = huber,
       .flops = huber_flops,
       .describe = describe_huber},
      {.id = GPUNN_OP_HUBER_LOSS_BACKWARD,
       .decompose = huber_backward,
       .flops = huber_flops,
       .describe = describe_huber},
  };
}

}  // namespace gpunn::graph
