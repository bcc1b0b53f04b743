// ADVANCE, TABLE_LOAD and TABLE_STORE: a few bytes each, on the calling thread.
#include <gpunn/plugin.hpp>

#include <cstring>

#include "add_op.hpp"
#include "kernels.hpp"

namespace gpunn::cpu {
namespace {

struct AdvancePlan {
  int64_t increment = 0;
};

AdvancePlan plan_advance(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  require_scalar(desc.input(0), GPUNN_I64, "counter");
  require_scalar(desc.output(0), GPUNN_I64, "counter");
  return {.increment = require_attrs<gpunn_advance_attrs>(desc).increment};
}

// Unsigned, so that a counter wraps round instead of overflowing.
void run_advance(const AdvancePlan& plan, const OpArgs& args) {
  auto* counter = args.out<int64_t>(0);
  *counter = static_cast<int64_t>(static_cast<uint64_t>(*counter) + static_cast<uint64_t>(plan.increment));
}

struct TablePlan {
  int64_t length = 0;
  std::size_t element = 0;  // bytes
};

// Tables of any type serve; its bytes are moved.
TablePlan plan_table(const OpDesc& desc, const gpunn_tensor& value) {
  const gpunn_tensor& table = desc.input(0);
  require_packed(table, table.dtype, "table");
  require(table.rank == 1 && table.dim[0] >= 1, "table must be [T] with T at least 1");
  require_scalar(desc.input(1), GPUNN_I64, "step");
  require_scalar(value, table.dtype, "the value");
  return {.length = table.dim[0], .element = dtype_size(table.dtype)};
}

TablePlan plan_load(const OpDesc& desc) {
  require_tensors(desc, 2, 2, 1);
  return plan_table(desc, desc.output(0));
}

void run_load(const TablePlan& plan, const OpArgs& args) {
  const auto at = static_cast<std::size_t>(std::clamp<int64_t>(*args.in<int64_t>(1), 0, plan.length - 1));
  std::memcpy(args.out<char>(0), args.in<char>(0) + at * plan.element, plan.element);
}

TablePlan plan_store(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  require_packed(desc.output(0), desc.input(0).dtype, "table");
  require_same_shape(desc.input(0), desc.output(0), "table");
  return plan_table(desc, desc.input(2));
}

void run_store(const TablePlan& plan, const OpArgs& args) {
  const int64_t remainder = *args.in<int64_t>(1) % plan.length;
  const auto at = static_cast<std::size_t>(remainder < 0 ? remainder + plan.length : remainder);
  std::memcpy(args.out<char>(0) + at * plan.element, args.in<char>(2), plan.element);
}

}  // namespace

void add_counter_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_ADVANCE, plan_advance, run_advance);
  add_op(device, GPUNN_OP_TABLE_LOAD, plan_load, run_load);
  add_op(device, GPUNN_OP_TABLE_STORE, plan_store, run_store);
}

}  // namespace gpunn::cpu
