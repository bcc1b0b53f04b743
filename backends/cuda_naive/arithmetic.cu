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

template <class Function>
__global__ void of_one(Broadcast plan, const float* x, float* y) {
  const int64_t i = thread_index();
  if (i < plan.n) y[i] = Function()(x[offset_of(plan, 0, i)]);
}

template <class Function>
__global__ void of_two(Broadcast plan, const float* a, const float* b, float* y) {
  const int64_t i = thread_index();
  if (i < plan.n) y[i] = Function()(a[offset_of(plan, 0, i)], b[offset_of(plan, 1, i)]);
}

__global__ void select(Broadcast plan, const float* condition, const float* a, const float* b, float* y) {
  const int64_t i = thread_index();
  if (i >= plan.n) return;
  y[i] = condition[offset_of(plan, 0, i)] != 0.0F ? a[offset_of(plan, 1, i)] : b[offset_of(plan, 2, i)];
}

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Difference {
  __device__ float operator()(float a, float b) const { return a - b; }
};
struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Quotient {
  __device__ float operator()(float a, float b) const { return a / b; }
};
// Not fmaxf and fminf, which drop a NaN.
struct Larger {
  __device__ float operator()(float a, float b) const { return a != a || a >= b ? a : b; }
};
struct Smaller {
  __device__ float operator()(float a, float b) const { return a != a || a <= b ? a : b; }
};
struct Power {
  __device__ float operator()(float a, float b) const { return powf(a, b); }
};
struct Equal {
  __device__ float operator()(float a, float b) const { return a == b ? 1.0F : 0.0F; }
};
struct Less {
  __device__ float operator()(float a, float b) const { return a < b ? 1.0F : 0.0F; }
};
struct LessEqual {
  __device__ float operator()(float a, float b) const { return a <= b ? 1.0F : 0.0F; }
};
struct Itself {
  __device__ float operator()(float x) const { return x; }
};
struct Exp {
  __device__ float operator()(float x) const { return expf(x); }
};
struct Log {
  __device__ float operator()(float x) const { return logf(x); }
};
struct Sqrt {
  __device__ float operator()(float x) const { return sqrtf(x); }
};
struct Rsqrt {
  __device__ float operator()(float x) const { return rsqrtf(x); }
};
struct Erf {
  __device__ float operator()(float x) const { return erff(x); }
};

template <class Function>
void run_one(const Broadcast& plan, cudaStream_t stream, const OpArgs& args) {
  launch(of_one<Function>, thread_each(plan.n), stream, plan, args.in<float>(0), args.out<float>(0));
}

template <class Function>
void run_two(const Broadcast& plan, cudaStream_t stream, const OpArgs& args) {
  launch(of_two<Function>, thread_each(plan.n), stream, plan, args.in<float>(0), args.in<float>(1), args.out<float>(0));
}

void run_select(const Broadcast& plan, cudaStream_t stream, const OpArgs& args) {
  launch(select, thread_each(plan.n), stream, plan, args.in<float>(0), args.in<float>(1), args.in<float>(2),
         args.out<float>(0));
}

}  // namespace

void add_arithmetic_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_ADD, "add", broadcast_of, run_two<Sum>);
  add_op(device, GPUNN_OP_SUB, "sub", broadcast_of, run_two<Difference>);
  add_op(device, GPUNN_OP_MUL, "mul", broadcast_of, run_two<Product>);
  add_op(device, GPUNN_OP_DIV, "div", broadcast_of, run_two<Quotient>);
  add_op(device, GPUNN_OP_MAXIMUM, "maximum", broadcast_of, run_two<Larger>);
  add_op(device, GPUNN_OP_MINIMUM, "minimum", broadcast_of, run_two<Smaller>);
  add_op(device, GPUNN_OP_POW, "pow", broadcast_of, run_two<Power>);
  add_op(device, GPUNN_OP_EQUAL, "equal", broadcast_of, run_two<Equal>);
  add_op(device, GPUNN_OP_LESS, "less", broadcast_of, run_two<Less>);
  add_op(device, GPUNN_OP_LESS_EQUAL, "less_equal", broadcast_of, run_two<LessEqual>);
  add_op(device, GPUNN_OP_SELECT, "select", broadcast_of, run_select);
  add_op(device, GPUNN_OP_EXPAND, "expand", broadcast_of, run_one<Itself>);
  add_op(device, GPUNN_OP_EXP, "exp", broadcast_of, run_one<Exp>);
  add_op(device, GPUNN_OP_LOG, "log", broadcast_of, run_one<Log>);
  add_op(device, GPUNN_OP_SQRT, "sqrt", broadcast_of, run_one<Sqrt>);
  add_op(device, GPUNN_OP_RSQRT, "rsqrt", broadcast_of, run_one<Rsqrt>);
  add_op(device, GPUNN_OP_ERF, "erf", broadcast_of, run_one<Erf>);
}

}  // namespace gpunn::cuda_naive
