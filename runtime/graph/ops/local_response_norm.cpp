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

}  // namespace

std::vector<OpInfo> local_response_norm_ops() {
  return {
      {.id = GPUNN_OP_LOCAL_RESPONSE_NORM,
       .gradient = response_gradient,
       .flops = response_flops,
       .describe = describe_response},
      {.id = GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, .flops = response_backward_flops, .describe = describe_response},
  };
}

}  // namespace gpunn::graph
