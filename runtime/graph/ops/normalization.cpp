// BATCH_NORM, its backward and BATCH_NORM_INFERENCE.
#include <gpunn/ops.h>

#include <sstream>
#include <utility>

#include "graph/expressions.hpp"
#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

// Nothing flows to the running statistics, which do not enter y.
void batch_norm_gradient(GradientContext& c) {
  std::vector<ValueId> inputs{c.output_gradient(), c.input(0), c.input(1), c.output(1), c.output(2)};
  if (c.node().inputs.size() == 6) inputs.push_back(c.input(5));
  const std::vector<ValueId> gradients = c.graph().add(GPUNN_OP_BATCH_NORM_BACKWARD, c.name(), {}, std::move(inputs));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (c.wants(i)) c.set(i, gradients[i]);
  }
}

// Mean and variance are given, so that y is x scaled and shifted by channel: dx is dy scaled alike, which the op itself
// does with a mean and a shift of 0. Nothing flows to the statistics.
void batch_norm_inference_gradient(GradientContext& c) {
  const ValueId dy = c.output_gradient(), gamma = c.input(1), mean = c.input(3), variance = c.input(4);
  const Attributes& attrs = c.node().attrs;
  const Shape channels = c.graph().value(gamma).type.shape;
  Expressions e(c.graph(), c.name());
  const ValueId zeros = e.constant(0, channels);
  if (c.wants(0)) c.set(0, c.add(GPUNN_OP_BATCH_NORM_INFERENCE, attrs, {dy, gamma, zeros, zeros, variance}));
  if (c.wants(1)) {
    // rstd is what the op makes of ones.
    const Shape row{1, channels[0]};
    const ValueId ones = e.constant(1, row);
    const ValueId factor = c.graph().add_view(c.name() + ".ones", ones, {DType::f32, channels});
    const ValueId deviations = c.add(GPUNN_OP_BATCH_NORM_INFERENCE, attrs, {ones, factor, zeros, zeros, variance});
    const ValueId rstd = c.graph().add_view(c.name() + ".rstd", deviations, {DType::f32, channels});
    const std::vector<ValueId> gradients =
        c.graph().add(GPUNN_OP_BATCH_NORM_BACKWARD, c.name(), {}, {dy, c.input(0), gamma, mean, rstd});
    c.set(1, gradients[1]);
  }
  if (c.wants(2)) c.set(2, c.add(GPUNN_OP_BIAS_BACKWARD, {}, {dy}));
}

double batch_norm_flops(const OpSignature& s) { return 8.0 * static_cast<double>(s.inputs[0].elements()); }
double batch_norm_backward_flops(const OpSignature& s) { return 10.0 * static_cast<double>(s.inputs[0].elements()); }
double batch_norm_inference_flops(const OpSignature& s) { return 2.0 * static_cast<double>(s.inputs[0].elements()); }

std::string describe_batch_norm(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_batch_norm_attrs>();
  std::ostringstream text;
  text << "epsilon " << a.epsilon << ", momentum " << a.momentum;
  return text.str();
}

std::string describe_inference(const Attributes& attrs) {
  std::ostringstream text;
  text << "epsilon " << attrs.as<gpunn_batch_norm_attrs>().epsilon;
  return text.str();
}

std::vector<ValueId> batch_norm_inference(Composition& c) {
  const ValueId x = c.in(0);
  const ValueId rstd = c.rsqrt(c.add(c.in(4), c.constant(c.attrs<gpunn_batch_norm_attrs>().epsilon)));
  const ValueId centred = c.sub(x, c.by_channel(c.in(3), x));
  return {c.add(c.mul(centred, c.by_channel(c.mul(rstd, c.in(1)), x)), c.by_channel(c.in(2), x))};
}

}  // namespace

std::vector<OpInfo> normalization_ops() {
  return {
      {.id = GPUNN_OP_BATCH_NORM,
       .gradient = batch_norm_gradient,
       .flops = batch_norm_flops,
       .describe = describe_batch_norm},
      {.id = GPUNN_OP_BATCH_NORM_BACKWARD, .flops = batch_norm_backward_flops},
      {.id = GPUNN_OP_BATCH_NORM_INFERENCE,
       .gradient = batch_norm_inference_gradient,
       .decompose = batch_norm_inference,
       .flops = batch_norm_inference_flops,
       .describe = describe_inference},
  };
}

}  // namespace gpunn::graph
