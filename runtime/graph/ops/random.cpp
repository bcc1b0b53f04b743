// RANDOM_UNIFORM, RANDOM_NORMAL, RANDOM_PERMUTATION and DROPOUT.
#include <gpunn/ops.h>

#include <limits>
#include <sstream>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

Shape random_shape(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_random_attrs>();
  require(a.rank >= 0 && a.rank <= GPUNN_MAX_RANK, "rank " + std::to_string(a.rank) + " is not between 0 and 8");
  for (int32_t i = 0; i < a.rank; ++i) require(a.dim[i] >= 0, "a dimension must not be negative");
  return {a.dim, a.dim + a.rank};
}

Types infer_random(const Attributes& attrs, Inputs in) {
  require_scalar(in[0], DType::i64, "counter");
  return {{DType::f32, random_shape(attrs)}};
}

Types infer_permutation(const Attributes& attrs, Inputs in) {
  require_scalar(in[0], DType::i64, "counter");
  const Shape shape = random_shape(attrs);
  require(shape.size() == 1 && shape[0] <= std::numeric_limits<int32_t>::max(),
          "a permutation has one dimension of at most 2^31 - 1 entries, not " + to_string(shape));
  return {{DType::i32, shape}};
}

Types infer_dropout(const Attributes& attrs, Inputs in) {
  require_dtype(in[0], DType::f32, "x");
  require_scalar(in[1], DType::i64, "counter");
  const float p = attrs.as<gpunn_dropout_attrs>().p;
  require(p >= 0 && p < 1, "p " + std::to_string(p) + " is not in [0, 1)");
  return {in[0]};
}

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
      {.id = GPUNN_OP_RANDOM_UNIFORM,
       .name = "RANDOM_UNIFORM",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_random,
       .flops = no_flops,
       .describe = describe_random},
      {.id = GPUNN_OP_RANDOM_NORMAL,
       .name = "RANDOM_NORMAL",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_random,
       .flops = no_flops,
       .describe = describe_random},
      {.id = GPUNN_OP_RANDOM_PERMUTATION,
       .name = "RANDOM_PERMUTATION",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_permutation,
       .flops = no_flops,
       .describe = describe_random},
      {.id = GPUNN_OP_DROPOUT,
       .name = "DROPOUT",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_dropout,
       .may_alias = {{0}},
       .gradient = dropout_gradient,
       .describe = describe_dropout},
  };
}

}  // namespace gpunn::graph
