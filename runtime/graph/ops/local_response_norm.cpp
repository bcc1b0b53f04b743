// LOCAL_RESPONSE_NORM and its backward.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

void require_response(const Attributes& attrs, const TensorType& x) {
  require_dtype(x, DType::f32, "x");
  require(x.shape.size() >= 2, "x must have the dimensions [N,C,...], is " + to_string(x));
  const auto a = attrs.as<gpunn_local_response_norm_attrs>();
  require(a.size >= 1, "size " + std::to_string(a.size) + " must be at least 1");
  require(a.alpha >= 0, "alpha " + std::to_string(a.alpha) + " must not be negative");
  require(a.k > 0, "k " + std::to_string(a.k) + " must be positive");
}

Types infer_response(const Attributes& attrs, Inputs in) {
  require_response(attrs, in[0]);
  return {in[0]};
}

Types infer_response_backward(const Attributes& attrs, Inputs in) {
  require_same(in[0], in[1], "dy", "x");
  require_response(attrs, in[1]);
  return {in[1]};
}

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

}  // namespace

std::vector<OpInfo> local_response_norm_ops() {
  return {
      {.id = GPUNN_OP_LOCAL_RESPONSE_NORM,
       .name = "LOCAL_RESPONSE_NORM",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_response,
       .gradient = response_gradient,
       .flops = response_flops,
       .describe = describe_response},
      {.id = GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD,
       .name = "LOCAL_RESPONSE_NORM_BACKWARD",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_response_backward,
       .flops = response_backward_flops,
       .describe = describe_response},
  };
}

}  // namespace gpunn::graph
