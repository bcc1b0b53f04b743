// SAMPLE_INDICES, GATHER_ROWS, SCATTER_ADD and GATHER_NORMALIZE.
#include <gpunn/ops.h>

#include "graph/gradient.hpp"
#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

// Each is the other's adjoint.
void gather_gradient(GradientContext& c) {
  const int64_t rows = c.graph().value(c.input(0)).type.shape[0];
  c.set(0, c.add(GPUNN_OP_SCATTER_ADD, Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = rows}),
                 {c.output_gradient(), c.input(1)}));
}

void scatter_gradient(GradientContext& c) {
  c.set(0, c.add(GPUNN_OP_GATHER_ROWS, {}, {c.output_gradient(), c.input(1)}));
}

double scatter_flops(const OpSignature& s) { return static_cast<double>(s.inputs[0].elements()); }

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
      {.id = GPUNN_OP_SAMPLE_INDICES, .flops = no_flops, .describe = describe_sample},
      {.id = GPUNN_OP_GATHER_ROWS, .gradient = gather_gradient, .flops = no_flops, .bytes = gathered_bytes},
      {.id = GPUNN_OP_SCATTER_ADD, .gradient = scatter_gradient, .flops = scatter_flops},
      {.id = GPUNN_OP_GATHER_NORMALIZE, .flops = normalize_flops, .bytes = gathered_bytes},
  };
}

}  // namespace gpunn::graph
