// REDUCE, MEAN_ROWS and its backward, NORM.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

Types infer_reduce(const Attributes& attrs, Inputs in) {
  require_dtype(in[0], DType::f32, "x");
  const auto a = attrs.as<gpunn_reduce_attrs>();
  const Shape& x = in[0].shape;
  require(a.kind >= GPUNN_REDUCE_SUM && a.kind <= GPUNN_REDUCE_MAX, "unknown reduction " + std::to_string(a.kind));
  require((a.axes >> x.size()) == 0,
          "the axes' mask " + std::to_string(a.axes) + " names a dimension that x " + to_string(x) + " does not have");
  TensorType y{DType::f32, {}};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool reduced = ((a.axes >> i) & 1U) != 0;
    require(!reduced || x[i] > 0 || a.kind == GPUNN_REDUCE_SUM, "x " + to_string(x) + " has nothing to reduce");
    if (!reduced) y.shape.push_back(x[i]);
    if (reduced && a.keep_dims != 0) y.shape.push_back(1);
  }
  return {y};
}

Types infer_mean_rows(const Attributes&, Inputs in) {
  require_f32(in[0], 1, "x");
  require_scalar(in[1], DType::i32, "count");
  return {{DType::f32, {}}};
}

Types infer_mean_rows_backward(const Attributes& attrs, Inputs in) {
  require_scalar(in[0], DType::f32, "dy");
  require_scalar(in[1], DType::i32, "count");
  const int64_t rows = attrs.as<gpunn_rows_attrs>().rows;
  require(rows >= 0, "rows " + std::to_string(rows) + " must not be negative");
  return {{DType::f32, {rows}}};
}

Types infer_norm(const Attributes&, Inputs in) {
  require_dtype(in[0], DType::f32, "x");
  return {{DType::f32, {}}};
}

void mean_rows_gradient(GradientContext& c) {
  const int64_t rows = c.graph().value(c.input(0)).type.shape[0];
  c.set(0, c.add(GPUNN_OP_MEAN_ROWS_BACKWARD,
                 Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows}),
                 {c.output_gradient(), c.input(1)}));
}

double input_flops(const OpSignature& s) { return static_cast<double>(s.inputs[0].elements()); }

double norm_flops(const OpSignature& s) { return 2.0 * static_cast<double>(s.inputs[0].elements()); }

std::string describe_reduce(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_reduce_attrs>();
  std::string text = a.kind == GPUNN_REDUCE_SUM ? "sum" : a.kind == GPUNN_REDUCE_MEAN ? "mean" : "max";
  text += " over";
  for (uint32_t i = 0; i < GPUNN_MAX_RANK; ++i) {
    if (((a.axes >> i) & 1U) != 0) text += " " + std::to_string(i);
  }
  return text;
}

}  // namespace

std::vector<OpInfo> reduction_ops() {
  return {
      {.id = GPUNN_OP_REDUCE,
       .name = "REDUCE",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_reduce,
       .flops = input_flops,
       .describe = describe_reduce},
      {.id = GPUNN_OP_MEAN_ROWS,
       .name = "MEAN_ROWS",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_mean_rows,
       .gradient = mean_rows_gradient,
       .flops = input_flops},
      {.id = GPUNN_OP_MEAN_ROWS_BACKWARD,
       .name = "MEAN_ROWS_BACKWARD",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_mean_rows_backward},
      {.id = GPUNN_OP_NORM, .name = "NORM", .min_inputs = 1, .max_inputs = 1, .infer = infer_norm, .flops = norm_flops},
  };
}

}  // namespace gpunn::graph
