// METRICS_ACCUMULATE.
#include <gpunn/ops.h>

#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

std::vector<TensorType> infer_metrics(const Attributes&, std::span<const TensorType> in) {
  require_f32(in[0], 1, "loss");
  require_scalar(in[1], DType::i32, "count");
  require(in[2] == TensorType{DType::f64, {4}}, "totals must be f64[4], is " + to_string(in[2]));
  require(in.size() != 4, "x and label go together");
  if (in.size() == 5) {
    require_f32(in[3], 2, "x");
    require(in[3].shape[0] == in[0].shape[0],
            "x " + to_string(in[3]) + " must have the rows of loss " + to_string(in[0]));
    require_labels(in[4], in[0].shape[0]);
  }
  return {in[2]};
}

}  // namespace

std::vector<OpInfo> metrics_ops() {
  return {{.id = GPUNN_OP_METRICS_ACCUMULATE,
           .name = "METRICS_ACCUMULATE",
           .min_inputs = 3,
           .max_inputs = 5,
           .infer = infer_metrics,
           .in_place = {2}}};
}

}  // namespace gpunn::graph
