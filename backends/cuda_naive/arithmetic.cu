// Arithmetic with broadcasting, and functions of one number. One thread computes one element of y.
//
// Without broadcasting, the threads of a warp read neighbouring elements and the index loop ends at the first
// dimension. The run time is then that of moving the bytes. With a broadcast operand each thread splits its index with
// one division a dimension, which costs more than the arithmetic. The repeated numbers come from the cache. The next
// version would divide by multiplying, and keep one row of the broadcast operand in each thread block.
#include "common/broadcast.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
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

template <class T, float (*function)(float)>
__global__ void of_one(Broadcast plan, const T* x, T* y) {
  const int64_t i = thread_index();
  if (i < plan.n) y[i] = static_cast<T>(function(static_cast<float>(x[offset_of(plan, 0, i)])));
}

template <class T, float (*function)(float, float)>
__global__ void of_two(Broadcast plan, const T* a, const T* b, T* y) {
  const int64_t i = thread_index();
  if (i >= plan.n) return;
  const auto left = static_cast<float>(a[offset_of(plan, 0, i)]), right = static_cast<float>(b[offset_of(plan, 1, i)]);
  y[i] = static_cast<T>(function(left, right));
}

template <class T>
__global__ void select(Broadcast plan, const T* condition, const T* a, const T* b, T* y) {
  const int64_t i = thread_index();
  if (i >= plan.n) return;
  y[i] = static_cast<float>(condition[offset_of(plan, 0, i)]) != 0.0F ? a[offset_of(plan, 1, i)]
                                                                      : b[offset_of(plan, 2, i)];
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

template <class T, float (*function)(float)>
void run_one(const Broadcast& plan, cudaStream_t stream, const OpArgs& args) {
  launch(of_one<T, function>, thread_each(plan.n), stream, plan, args.in<T>(0), args.out<T>(0));
}

template <class T, float (*function)(float, float)>
void run_two(const Broadcast& plan, cudaStream_t stream, const OpArgs& args) {
  launch(of_two<T, function>, thread_each(plan.n), stream, plan, args.in<T>(0), args.in<T>(1), args.out<T>(0));
}

template <class T>
void run_select(const Broadcast& plan, cudaStream_t stream, const OpArgs& args) {
  launch(select<T>, thread_each(plan.n), stream, plan, args.in<T>(0), args.in<T>(1), args.in<T>(2), args.out<T>(0));
}

}  // namespace

void add_arithmetic_kernels(plugin::Device& device) {
  const auto serve = [&device](int32_t op, const char* name, auto run) {
    add_op(device, op, name, broadcast_of, run, Dtypes::floating, Layouts::channels_last_too);
  };
  serve(GPUNN_OP_ADD, "add", each_floating([](auto x) { return run_two<decltype(x), sum>; }));
  serve(GPUNN_OP_SUB, "sub", each_floating([](auto x) { return run_two<decltype(x), difference>; }));
  serve(GPUNN_OP_MUL, "mul", each_floating([](auto x) { return run_two<decltype(x), product>; }));
  serve(GPUNN_OP_DIV, "div", each_floating([](auto x) { return run_two<decltype(x), quotient>; }));
  serve(GPUNN_OP_MAXIMUM, "maximum", each_floating([](auto x) { return run_two<decltype(x), larger>; }));
  serve(GPUNN_OP_MINIMUM, "minimum", each_floating([](auto x) { return run_two<decltype(x), smaller>; }));
  serve(GPUNN_OP_POW, "pow", each_floating([](auto x) { return run_two<decltype(x), power>; }));
  serve(GPUNN_OP_EQUAL, "equal", each_floating([](auto x) { return run_two<decltype(x), equal>; }));
  serve(GPUNN_OP_LESS, "less", each_floating([](auto x) { return run_two<decltype(x), less>; }));
  serve(GPUNN_OP_LESS_EQUAL, "less_equal", each_floating([](auto x) { return run_two<decltype(x), less_equal>; }));
  serve(GPUNN_OP_SELECT, "select", each_floating([](auto x) { return run_select<decltype(x)>; }));
  serve(GPUNN_OP_EXPAND, "expand", each_floating([](auto x) { return run_one<decltype(x), itself>; }));
  serve(GPUNN_OP_EXP, "exp", each_floating([](auto x) { return run_one<decltype(x), exponential>; }));
  serve(GPUNN_OP_LOG, "log", each_floating([](auto x) { return run_one<decltype(x), logarithm>; }));
  serve(GPUNN_OP_SQRT, "sqrt", each_floating([](auto x) { return run_one<decltype(x), root>; }));
  serve(GPUNN_OP_RSQRT, "rsqrt", each_floating([](auto x) { return run_one<decltype(x), rsqrt_of>; }));
  serve(GPUNN_OP_ERF, "erf", each_floating([](auto x) { return run_one<decltype(x), error_function>; }));
}

}  // namespace gpunn::cuda_naive
