// SAMPLE_INDICES, GATHER_ROWS and GATHER_NORMALIZE.
#include <gpunn/ops.h>

#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

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
      {.id = GPUNN_OP_GATHER_ROWS, .flops = no_flops, .bytes = gathered_bytes},
      {.id = GPUNN_OP_GATHER_NORMALIZE, .flops = normalize_flops, .bytes = gathered_bytes},
  };
}

}  // namespace gpunn::graph
