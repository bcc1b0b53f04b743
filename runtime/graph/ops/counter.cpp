// ADVANCE, TABLE_LOAD and TABLE_STORE.
#include <gpunn/ops.h>

#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

// The step, and one entry of the table read and written.
double entry_bytes(const OpSignature& s) {
  return static_cast<double>(s.inputs[1].bytes() + 2 * size_of(s.inputs[0].dtype));
}

std::string describe_advance(const Attributes& attrs) {
  return "by " + std::to_string(attrs.as<gpunn_advance_attrs>().increment);
}

}  // namespace

std::vector<OpInfo> counter_ops() {
  return {
      {.id = GPUNN_OP_ADVANCE, .flops = no_flops, .describe = describe_advance},
      {.id = GPUNN_OP_TABLE_LOAD, .flops = no_flops, .bytes = entry_bytes},
      {.id = GPUNN_OP_TABLE_STORE, .flops = no_flops, .bytes = entry_bytes},
  };
}

}  // namespace gpunn::graph
