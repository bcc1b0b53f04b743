// LAYER_NORM and its backward.
#include <gpunn/ops.h>

#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

void require_numbers(const TensorType& type, int64_t count, const char* name, const TensorType& x) {
  const TensorType expected{DType::f32, {count}};
  require(type == expected,
          std::string(name) + " of x " + to_string(x) + " must be " + to_string(expected) + ", is " + to_string(type));
}

Types infer_layer_norm(const Attributes& attrs, Inputs in) {
  require_f32(in[0], 2, "x");
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  require(columns > 0, "x must have at least one column, is " + to_string(in[0]));
  require_numbers(in[1], columns, "gamma", in[0]);
  require_numbers(in[2], columns, "beta", in[0]);
  const float epsilon = attrs.as<gpunn_layer_norm_attrs>().epsilon;
  require(epsilon > 0, "epsilon " + std::to_string(epsilon) + " must be positive");
  const TensorType by_row{DType::f32, {rows}};
  return {in[0], by_row, by_row};
}

Types infer_layer_norm_backward(const Attributes&, Inputs in) {
  require_same(in[0], in[1], "dy", "x");
  require_f32(in[1], 2, "x");
  const int64_t rows = in[1].shape[0], columns = in[1].shape[1];
  require(columns > 0, "x must have at least one column, is " + to_string(in[1]));
  require_numbers(in[2], columns, "gamma", in[1]);
  require_numbers(in[3], rows, "mean", in[1]);
  require_numbers(in[4], rows, "inv_dev", in[1]);
  return {in[1], in[2], in[2]};
}

void layer_norm_gradient(GradientContext& c) {
  const std::vector<ValueId> gradients =
      c.graph().add(GPUNN_OP_LAYER_NORM_BACKWARD, c.name(), {},
                    {c.output_gradient(), c.input(0), c.input(1), c.output(1), c.output(2)});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (c.wants(i)) c.set(i, gradients[i]);
  }
}

double layer_norm_flops(const OpSignature& s) { return 8.0 * static_cast<double>(s.inputs[0].elements()); }
double layer_norm_backward_flops(const OpSignature& s) { return 13.0 * static_cast<double>(s.inputs[0].elements()); }

std::string describe_layer_norm(const Attributes& attrs) {
  std::ostringstream text;
  text << "epsilon " << attrs.as<gpunn_layer_norm_attrs>().epsilon;
  return text.str();
}

}  // namespace

std::vector<OpInfo> layer_norm_ops() {
  return {
      {.id = GPUNN_OP_LAYER_NORM,
       .name = "LAYER_NORM",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_layer_norm,
       .gradient = layer_norm_gradient,
       .flops = layer_norm_flops,
       .describe = describe_layer_norm},
      {.id = GPUNN_OP_LAYER_NORM_BACKWARD,
       .name = "LAYER_NORM_BACKWARD",
       .min_inputs = 5,
       .max_inputs = 5,
       .infer = infer_layer_norm_backward,
       .flops = layer_norm_backward_flops},
  };
}

}  // namespace gpunn::graph
