// ADVANCE, TABLE_LOAD and TABLE_STORE: a few bytes each, on the calling thread.
#include "common/counter.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>

#include "add_op.hpp"
#include "kernels.hpp"

namespace gpunn::cpu {
namespace {

// Unsigned, so that a counter wraps round instead of overflowing.
void run_advance(const int64_t& increment, const OpArgs& args) {
  auto* counter = args.out<int64_t>(0);
  *counter = static_cast<int64_t>(static_cast<uint64_t>(*counter) + static_cast<uint64_t>(increment));
}

void run_load(const Table& plan, const OpArgs& args) {
  *args.out<float>(0) = args.in<float>(0)[std::clamp<int64_t>(*args.in<int64_t>(1), 0, plan.length - 1)];
}

void run_store(const Table& plan, const OpArgs& args) {
  const int64_t remainder = *args.in<int64_t>(1) % plan.length;
  args.out<float>(0)[remainder < 0 ? remainder + plan.length : remainder] = *args.in<float>(2);
}

}  // namespace

void add_counter_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_ADVANCE, advance_of, run_advance);
  add_op(device, GPUNN_OP_TABLE_LOAD, table_load_of, run_load);
  add_op(device, GPUNN_OP_TABLE_STORE, table_store_of, run_store);
}

}  // namespace gpunn::cpu
