// RANDOM_UNIFORM, RANDOM_NORMAL, RANDOM_PERMUTATION and DROPOUT.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

void dropout_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_DROPOUT, c.node().attrs, {c.output_gradient(), c.input(1)}));
}

std::string describe_random(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_random_attrs>();
  std::ostringstream text;
  text << a.low << " " << a.high << ", seed " << a.seed << ", stream " << a.stream;
  return text.str();
}

std::string describe_dropout(const Attributes& attrs) {
  std::ostringstream text;
  text << "p " << attrs.as<gpunn_dropout_attrs>().p;
  return text.str();
}

}  // namespace

std::vector<OpInfo> random_ops() {
  return {
      {.id = GPUNN_OP_RANDOM_UNIFORM, .flops = no_flops, .describe = describe_random},
      {.id = GPUNN_OP_RANDOM_NORMAL, .flops = no_flops, .describe = describe_random},
      {.id = GPUNN_OP_RANDOM_PERMUTATION, .flops = no_flops, .describe = describe_random},
      {.id = GPUNN_OP_DROPOUT, .gradient = dropout_gradient, .describe = describe_dropout},
  };
}

}  // namespace gpunn::graph
