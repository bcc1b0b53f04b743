// SCALE, AXPBY, CLAMP and FILL: a thread an element.
//
// Neighbouring threads take neighbouring elements, so that the 32 threads of a warp read 128 bytes in one piece: the
// accesses are coalesced. Nothing is used twice, so the time is that of moving the bytes. What the next version would
// change: 16 bytes a thread instead of 4, for fewer instructions and more loads in flight, and no kernel of its own at
// all, since an element-wise op costs least as the last line of the kernel before it.
#include "common/elementwise.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

__global__ void scale(const float* x, float factor, float* y, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) y[i] = factor * x[i];
}

__global__ void axpby(float alpha, const float* a, float beta, const float* b, float* y, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) y[i] = alpha * a[i] + beta * b[i];
}

// Not fminf and fmaxf, which drop a NaN.
__global__ void clamp(const float* x, float low, float high, float* y, int64_t n) {
  const int64_t i = thread_index();
  if (i >= n) return;
  const float raised = x[i] < low ? low : x[i];
  y[i] = raised > high ? high : raised;
}

template <class T>
__global__ void fill(T value, T* y, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) y[i] = value;
}

void run_scale(const Scale& plan, cudaStream_t stream, const OpArgs& args) {
  launch(scale, thread_each(plan.n), stream, args.in<float>(0), plan.factor, args.out<float>(0), plan.n);
}

void run_axpby(const Axpby& plan, cudaStream_t stream, const OpArgs& args) {
  launch(axpby, thread_each(plan.n), stream, plan.alpha, args.in<float>(0), plan.beta, args.in<float>(1),
         args.out<float>(0), plan.n);
}

void run_clamp(const Clamp& plan, cudaStream_t stream, const OpArgs& args) {
  launch(clamp, thread_each(plan.n), stream, args.in<float>(0), plan.low, plan.high, args.out<float>(0), plan.n);
}

template <class T>
void fill_with(const Fill& plan, cudaStream_t stream, const OpArgs& args) {
  launch(fill<T>, thread_each(plan.n), stream, static_cast<T>(plan.value), args.out<T>(0), plan.n);
}

void run_fill(const Fill& plan, cudaStream_t stream, const OpArgs& args) {
  switch (plan.dtype) {
    case GPUNN_F32:
      return fill_with<float>(plan, stream, args);
    case GPUNN_F64:
      return fill_with<double>(plan, stream, args);
    case GPUNN_I32:
      return fill_with<int32_t>(plan, stream, args);
    case GPUNN_I64:
      return fill_with<int64_t>(plan, stream, args);
    default:
      return fill_with<uint8_t>(plan, stream, args);
  }
}

}  // namespace

void add_elementwise_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SCALE, "scale", scale_of, run_scale);
  add_op(device, GPUNN_OP_AXPBY, "axpby", axpby_of, run_axpby);
  add_op(device, GPUNN_OP_CLAMP, "clamp", clamp_of, run_clamp);
  add_op(device, GPUNN_OP_FILL, "fill", fill_of, run_fill);
}

}  // namespace gpunn::cuda_naive
