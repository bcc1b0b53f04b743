// ADVANCE, TABLE_LOAD and TABLE_STORE. One thread moves the few bytes of each.
//
// A kernel for eight bytes is all overhead: about a microsecond to do a nanosecond's work. It is still a kernel,
// because otherwise the host would have to wait for the GPU at every step. The next version would do the work at the
// end of a kernel that runs anyway.
#include "common/counter.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// Unsigned, so that a counter wraps round instead of overflowing.
__global__ void advance(int64_t* counter, int64_t increment) {
  *counter = static_cast<int64_t>(static_cast<uint64_t>(*counter) + static_cast<uint64_t>(increment));
}

// A step comes from device memory and may be anything: beyond the table it means its nearest entry.
__global__ void table_load(Table plan, const float* table, const int64_t* step, float* y) {
  *y = table[min(max(*step, int64_t{0}), plan.length - 1)];
}

// % of a negative number is negative or 0 in C++.
__global__ void table_store(Table plan, float* table, const int64_t* step, const float* value) {
  const int64_t remainder = *step % plan.length;
  table[remainder < 0 ? remainder + plan.length : remainder] = *value;
}

Launch one_thread() { return block_each(1, 1); }

void run_advance(int64_t increment, cudaStream_t stream, const OpArgs& args) {
  launch(advance, one_thread(), stream, args.out<int64_t>(0), increment);
}

void run_load(const Table& plan, cudaStream_t stream, const OpArgs& args) {
  launch(table_load, one_thread(), stream, plan, args.in<float>(0), args.in<int64_t>(1), args.out<float>(0));
}

void run_store(const Table& plan, cudaStream_t stream, const OpArgs& args) {
  launch(table_store, one_thread(), stream, plan, args.out<float>(0), args.in<int64_t>(1), args.in<float>(2));
}

}  // namespace

void add_counter_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_ADVANCE, "advance", advance_of, run_advance);
  add_op(device, GPUNN_OP_TABLE_LOAD, "table_load", table_load_of, run_load);
  add_op(device, GPUNN_OP_TABLE_STORE, "table_store", table_store_of, run_store);
}

}  // namespace gpunn::cuda_naive
