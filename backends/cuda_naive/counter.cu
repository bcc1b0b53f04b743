// ADVANCE, TABLE_LOAD and TABLE_STORE: a few bytes each, by a thread or a thread a byte.
//
// A kernel for eight bytes is all overhead: about a microsecond to do a nanosecond's work. It is a kernel all the same,
// since the alternative is that the host does it, which would have to wait for the GPU at every step. The next version
// would do it in the last line of a kernel that runs anyway.
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
__global__ void table_load(Table plan, const char* table, const int64_t* step, char* y) {
  const int64_t at = min(max(*step, int64_t{0}), plan.length - 1);
  y[threadIdx.x] = table[static_cast<uint64_t>(at) * plan.element + threadIdx.x];
}

// % of a negative number is negative or 0 in C++.
__global__ void table_store(Table plan, char* table, const int64_t* step, const char* value) {
  const int64_t remainder = *step % plan.length;
  const int64_t at = remainder < 0 ? remainder + plan.length : remainder;
  table[static_cast<uint64_t>(at) * plan.element + threadIdx.x] = value[threadIdx.x];
}

Launch one_thread() { return block_each(1, 1); }
Launch thread_a_byte(const Table& plan) { return block_each(1, static_cast<unsigned>(plan.element)); }

void run_advance(int64_t increment, cudaStream_t stream, const OpArgs& args) {
  launch(advance, one_thread(), stream, args.out<int64_t>(0), increment);
}

void run_load(const Table& plan, cudaStream_t stream, const OpArgs& args) {
  launch(table_load, thread_a_byte(plan), stream, plan, args.in<char>(0), args.in<int64_t>(1), args.out<char>(0));
}

void run_store(const Table& plan, cudaStream_t stream, const OpArgs& args) {
  launch(table_store, thread_a_byte(plan), stream, plan, args.out<char>(0), args.in<int64_t>(1), args.in<char>(2));
}

}  // namespace

void add_counter_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_ADVANCE, "advance", advance_of, run_advance);
  add_op(device, GPUNN_OP_TABLE_LOAD, "table_load", table_load_of, run_load);
  add_op(device, GPUNN_OP_TABLE_STORE, "table_store", table_store_of, run_store);
}

}  // namespace gpunn::cuda_naive
