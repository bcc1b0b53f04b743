// ADVANCE, TABLE_LOAD and TABLE_STORE.
#include <gpunn/ops.h>

#include "graph/ops/families.hpp"
#include "graph/ops/requirements.hpp"

namespace gpunn::graph {

namespace {

using Types = std::vector<TensorType>;
using Inputs = std::span<const TensorType>;

void require_table(Inputs in) {
  require_f32(in[0], 1, "table");
  require(in[0].shape[0] > 0, "table must have at least one entry");
  require_scalar(in[1], DType::i64, "step");
}

Types infer_advance(const Attributes&, Inputs in) {
  require_scalar(in[0], DType::i64, "counter");
  return {in[0]};
}

Types infer_table_load(const Attributes&, Inputs in) {
  require_table(in);
  return {{DType::f32, {}}};
}

Types infer_table_store(const Attributes&, Inputs in) {
  require_table(in);
  require_scalar(in[2], DType::f32, "value");
  return {in[0]};
}

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
      {.id = GPUNN_OP_ADVANCE,
       .name = "ADVANCE",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_advance,
       .in_place = {0},
       .flops = no_flops,
       .describe = describe_advance},
      {.id = GPUNN_OP_TABLE_LOAD,
       .name = "TABLE_LOAD",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_table_load,
       .flops = no_flops,
       .bytes = entry_bytes},
      {.id = GPUNN_OP_TABLE_STORE,
       .name = "TABLE_STORE",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_table_store,
       .in_place = {0},
       .flops = no_flops,
       .bytes = entry_bytes},
  };
}

}  // namespace gpunn::graph
