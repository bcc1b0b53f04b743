// Arithmetic with broadcasting, and functions of one number: a thread an element of y.
//
// Where nothing is repeated the threads of a warp read neighbours and the loop over the dimensions ends at the first;
// the time is that of moving the bytes. With a repeated operand each thread takes its index apart, a division a
// dimension, which costs more than the arithmetic; the repeated numbers come from the cache. The next version would
// divide by multiplying, and let a block keep one row of the operand that is repeated.
#include "common/broadcast.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// Where element i of y finds its operand.
__device__ int64_t offset_of(const Broadcast& plan, int operand, int64_t i) {
  int64_t offset = 0;
  for (int32_t k = plan.rank - 1; k > 0; --k) {
    offset += i % plan.dim[k] * plan.stride[operand][k];
    i /= plan.dim[k];
  }
  return offset + i * plan.stride[operand][0];
}

template <float (*function)(float)>
__global__ void of_one(Broadcast plan, const float* x, float* y) {
  const int64_t i = thread_index();
  if (i < plan.n) y[i] = function(x[offset_of(plan, 0, i)]);
}

template <float (*function)(float, float)>
__global__ void of_two(Broadcast plan, const float* a, const float* b, float* y) {
  const int64_t i = thread_index();
  if (i < plan.n) y[i] = function(a[offset_of(plan, 0, i)], b[offset_of(plan, 1, i)]);
}

__global__ void select(Broadcast plan, const float* condition, const float* a, const float* b, float* y) {
  const int64_t i = thread_index();
  if (i >= plan.n) return;
  y[i] = condition[offset_of(plan, 0, i)] != 0.0F ? a[offset_of(plan, 1, i)] : b[offset_of(plan, 2, i)];
}

__device__ float sum(float a, float b) { return a + b; }
__device__ float difference(float a, float b) { return a - b; }
__device__ float product(float a, float b) { return a * b; }
__device__ float quotient(float a, float b) { return a / b; }
// Not fmaxf and fminf, which drop a NaN.
__device__ float larger(float a, float b) { return a != a || a >= b ? a : b; }
__device__ float smaller(float a, float b) { return a != a || a <= b ? a : b; }
__device__ float power(float a, float b) { return powf(a, b); }
__device__ float equal(float a, float b) { return a == b ? 1.0F : 0.0F; }
__device__ float less(float a, float b) { return a < b ? 1.0F : 0.0F; }
__device__ float less_equal(float a, float b) { return a <= b ? 1.0F : 0.0F; }
__device__ float itself(float x) { return x; }
__device__ float exponential(float x) { return expf(x); }
__device__ float logarithm(float x) { return logf(x); }
__device__ float root(float x) { return sqrtf(x); }
__device__ float rsqrt_of(float x) { return rsqrtf(x); }
__device__ float error_function(float x) { return erff(x); }

template <float (*function)(float)>
void run_one(const Broadcast& plan, cudaStream_t stream, const OpArgs& args) {
  launch(of_one<function>, thread_each(plan.n), stream, plan, args.in<float>(0), args.out<float>(0));
}

template <float (*function)(float, float)>
void run_two(const Broadcast& plan, cudaStream_t stream, const OpArgs& args) {
  launch(of_two<function>, thread_each(plan.n), stream, plan, args.in<float>(0), args.in<float>(1), args.out<float>(0));
}

void run_select(const Broadcast& plan, cudaStream_t stream, const OpArgs& args) {
  launch(select, thread_each(plan.n), stream, plan, args.in<float>(0), args.in<float>(1), args.in<float>(2),
         args.out<float>(0));
}

}  // namespace

void add_arithmetic_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_ADD, "add", broadcast_of, run_two<sum>);
  add_op(device, GPUNN_OP_SUB, "sub", broadcast_of, run_two<difference>);
  add_op(device, GPUNN_OP_MUL, "mul", broadcast_of, run_two<product>);
  add_op(device, GPUNN_OP_DIV, "div", broadcast_of, run_two<quotient>);
  add_op(device, GPUNN_OP_MAXIMUM, "maximum", broadcast_of, run_two<larger>);
  add_op(device, GPUNN_OP_MINIMUM, "minimum", broadcast_of, run_two<smaller>);
  add_op(device, GPUNN_OP_POW, "pow", broadcast_of, run_two<power>);
  add_op(device, GPUNN_OP_EQUAL, "equal", broadcast_of, run_two<equal>);
  add_op(device, GPUNN_OP_LESS, "less", broadcast_of, run_two<less>);
  add_op(device, GPUNN_OP_LESS_EQUAL, "less_equal", broadcast_of, run_two<less_equal>);
  add_op(device, GPUNN_OP_SELECT, "select", broadcast_of, run_select);
  add_op(device, GPUNN_OP_EXPAND, "expand", broadcast_of, run_one<itself>);
  add_op(device, GPUNN_OP_EXP, "exp", broadcast_of, run_one<exponential>);
  add_op(device, GPUNN_OP_LOG, "log", broadcast_of, run_one<logarithm>);
  add_op(device, GPUNN_OP_SQRT, "sqrt", broadcast_of, run_one<root>);
  add_op(device, GPUNN_OP_RSQRT, "rsqrt", broadcast_of, run_one<rsqrt_of>);
  add_op(device, GPUNN_OP_ERF, "erf", broadcast_of, run_one<error_function>);
}

}  // namespace gpunn::cuda_naive
