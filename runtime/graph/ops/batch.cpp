// SAMPLE_INDICES, GATHER_ROWS and GATHER_NORMALIZE.
#include <gpunn/ops.h>

#include <limits>

#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

Types infer_sample(const Attributes& attrs, Inputs in) {
  require_scalar(in[0], DType::i64, "step");
  const auto a = attrs.as<gpunn_sample_attrs>();
  require(a.batch > 0, "batch " + std::to_string(a.batch) + " must be positive");
  require(a.rows > 0 && a.rows <= std::numeric_limits<int32_t>::max(),
          "rows " + std::to_string(a.rows) + " must be positive and below 2^31");
  require(a.drop_last == 0 || a.batch <= a.rows,
          "a batch of " + std::to_string(a.batch) + " is larger than the " + std::to_string(a.rows) + " rows of data");
  return {{DType::i32, {a.batch}}, {DType::i32, {}}};
}

Shape gathered(const TensorType& data, const TensorType& index) {
  require(!data.shape.empty(), "data must have rows, is a scalar");
  require_dtype(index, DType::i32, "index");
  require_rank(index, 1, "index");
  Shape shape = data.shape;
  shape[0] = index.shape[0];
  return shape;
}

Types infer_gather(const Attributes&, Inputs in) {
  const DType from = in[0].dtype;
  require(from == DType::u8 || from == DType::i32 || from == DType::i64 || from == DType::f32,
          "data must be u8, i32, i64 or f32, is " + to_string(in[0]));
  return {{from == DType::f32 ? DType::f32 : DType::i32, gathered(in[0], in[1])}};
}

Types infer_gather_normalize(const Attributes&, Inputs in) {
  require(in[0].dtype == DType::u8 || in[0].dtype == DType::f32, "data must be u8 or f32, is " + to_string(in[0]));
  require(in[0].shape.size() >= 2, "data must have at least 2 dimensions [n, C, ...], is " + to_string(in[0]));
  const Shape y = gathered(in[0], in[1]);
  require_f32(in[2], 1, "scale");
  require_same(in[2], in[3], "scale", "shift");
  require(in[2].shape[0] == y[1],
          "scale " + to_string(in[2]) + " must have one entry a channel of data " + to_string(in[0]));
  return {{DType::f32, y}};
}

double normalize_flops(const OpSignature& s) { return 2.0 * static_cast<double>(s.outputs[0].elements()); }

// The data set is large, and only the rows of the batch are read.
double gathered_bytes(const OpSignature& s) {
  double bytes = static_cast<double>(s.outputs[0].elements() * static_cast<int64_t>(size_of(s.inputs[0].dtype)));
  for (std::size_t i = 1; i < s.inputs.size(); ++i) bytes += static_cast<double>(s.inputs[i].bytes());
  return bytes + static_cast<double>(s.outputs[0].bytes());
}

std::string describe_sample(const Attributes& attrs) {
  const auto a = attrs.as<gpunn_sample_attrs>();
  return std::to_string(a.batch) + " of " + std::to_string(a.rows) + (a.shuffle != 0 ? ", shuffled" : "") +
         (a.drop_last != 0 ? ", last dropped" : "");
}

}  // namespace

std::vector<OpInfo> batch_ops() {
  return {
      {.id = GPUNN_OP_SAMPLE_INDICES,
       .name = "SAMPLE_INDICES",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_sample,
       .flops = no_flops,
       .describe = describe_sample},
      {.id = GPUNN_OP_GATHER_ROWS,
       .name = "GATHER_ROWS",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_gather,
       .flops = no_flops,
       .bytes = gathered_bytes},
      {.id = GPUNN_OP_GATHER_NORMALIZE,
       .name = "GATHER_NORMALIZE",
       .min_inputs = 4,
       .max_inputs = 4,
       .infer = infer_gather_normalize,
       .flops = normalize_flops,
       .bytes = gathered_bytes},
  };
}

}  // namespace gpunn::graph
