// ADD, SCALE, AXPBY, CLAMP and FILL of f32, and the ReLU and its gradient: as each.cuh has it.
#include "common/elementwise.hpp"
#include "cuda_common/add_op.hpp"
#include "device.hpp"
#include "elementwise/each.cuh"
#include "kernels.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

// y = f(x).
template <class F>
struct Map {
  static constexpr int kReads = 1, kWrites = 1;
  F f;
  __device__ void begin() {}
  __device__ void operator()(int64_t /*i*/, const float (&in)[1], float (&out)[1]) const { out[0] = f(in[0]); }
};

// y = f(a, b).
template <class F>
struct Map2 {
  static constexpr int kReads = 2, kWrites = 1;
  F f;
  __device__ void begin() {}
  __device__ void operator()(int64_t /*i*/, const float (&in)[2], float (&out)[1]) const { out[0] = f(in[0], in[1]); }
};

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct Product {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};

struct Combination {
  float alpha;
  float beta;
  __device__ float operator()(float a, float b) const { return alpha * a + beta * b; }
};

// Not fminf and fmaxf, which drop a NaN.
struct Between {
  float low;
  float high;
  __device__ float operator()(float x) const {
    const float raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};

// Not fmaxf, which drops a NaN.
struct Relu {
  __device__ float operator()(float x) const { return x < 0.0F ? 0.0F : x; }
};

struct ReluBackward {
  __device__ float operator()(float dy, float y) const { return y > 0.0F ? dy : 0.0F; }
};

struct Constant {
  static constexpr int kReads = 0, kWrites = 1;
  float value;
  __device__ void begin() {}
  __device__ void operator()(int64_t /*i*/, const float (&/*in*/)[1], float (&out)[1]) const { out[0] = value; }
};

template <class F>
void map(F f, int64_t n, cudaStream_t stream, const OpArgs& args) {
  each(Map<F>{f}, {{args.in<float>(0)}, {args.out<float>(0)}}, n, stream);
}

template <class F>
void map2(F f, int64_t n, cudaStream_t stream, const OpArgs& args) {
  each(Map2<F>{f}, {{args.in<float>(0), args.in<float>(1)}, {args.out<float>(0)}}, n, stream);
}

Fill f32_fill(const OpDesc& desc) {
  const Fill plan = fill_of(desc);
  require(plan.dtype == GPUNN_F32, "only f32 gains here");
  return plan;
}

void run_add(int64_t n, cudaStream_t stream, const OpArgs& args) { map2(Sum{}, n, stream, args); }
void run_relu(int64_t n, cudaStream_t stream, const OpArgs& args) { map(Relu{}, n, stream, args); }
void run_relu_backward(int64_t n, cudaStream_t stream, const OpArgs& args) { map2(ReluBackward{}, n, stream, args); }

void run_scale(const Scale& plan, cudaStream_t stream, const OpArgs& args) {
  map(Product{plan.factor}, plan.n, stream, args);
}

void run_axpby(const Axpby& plan, cudaStream_t stream, const OpArgs& args) {
  map2(Combination{plan.alpha, plan.beta}, plan.n, stream, args);
}

void run_clamp(const Clamp& plan, cudaStream_t stream, const OpArgs& args) {
  map(Between{plan.low, plan.high}, plan.n, stream, args);
}

void run_fill(const Fill& plan, cudaStream_t stream, const OpArgs& args) {
  each(Constant{static_cast<float>(plan.value)}, {{nullptr}, {args.out<float>(0)}}, plan.n, stream);
}

}  // namespace

void add_elementwise_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_ADD, "add", map_size, run_add);
  add_op(device, GPUNN_OP_SCALE, "scale", scale_of, run_scale);
  add_op(device, GPUNN_OP_AXPBY, "axpby", axpby_of, run_axpby);
  add_op(device, GPUNN_OP_CLAMP, "clamp", clamp_of, run_clamp);
  add_op(device, GPUNN_OP_FILL, "fill", f32_fill, run_fill);
  add_op(device, GPUNN_OP_RELU, "relu", map_size, run_relu);
  add_op(device, GPUNN_OP_RELU_BACKWARD, "relu_backward", map_size, run_relu_backward);
}

}  // namespace gpunn::cuda_tiled
