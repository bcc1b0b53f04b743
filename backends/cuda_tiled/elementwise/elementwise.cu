// ADD, SCALE, AXPBY, CLAMP, FILL of f32, and ReLU and its gradient, by the kernel of each.cuh.
#include "common/elementwise.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
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

template <class T, class F>
void map(F f, int64_t n, cudaStream_t stream, const OpArgs& args) {
  each<T>(Map<F>{f}, {{args.in<T>(0)}, {args.out<T>(0)}}, n, stream);
}

template <class T, class F>
void map2(F f, int64_t n, cudaStream_t stream, const OpArgs& args) {
  each<T>(Map2<F>{f}, {{args.in<T>(0), args.in<T>(1)}, {args.out<T>(0)}}, n, stream);
}

Fill f32_fill(const OpDesc& desc) {
  const Fill plan = fill_of(desc);
  require(plan.dtype == GPUNN_F32, "only f32 gains here");
  return plan;
}

template <class T>
void run_add(int64_t n, cudaStream_t stream, const OpArgs& args) {
  map2<T>(Sum{}, n, stream, args);
}
template <class T>
void run_relu(int64_t n, cudaStream_t stream, const OpArgs& args) {
  map<T>(Relu{}, n, stream, args);
}
template <class T>
void run_relu_backward(int64_t n, cudaStream_t stream, const OpArgs& args) {
  map2<T>(ReluBackward{}, n, stream, args);
}

template <class T>
void run_scale(const Scale& plan, cudaStream_t stream, const OpArgs& args) {
  map<T>(Product{plan.factor}, plan.n, stream, args);
}

template <class T>
void run_axpby(const Axpby& plan, cudaStream_t stream, const OpArgs& args) {
  map2<T>(Combination{plan.alpha, plan.beta}, plan.n, stream, args);
}

template <class T>
void run_clamp(const Clamp& plan, cudaStream_t stream, const OpArgs& args) {
  map<T>(Between{plan.low, plan.high}, plan.n, stream, args);
}

void run_fill(const Fill& plan, cudaStream_t stream, const OpArgs& args) {
  each(Constant{static_cast<float>(plan.value)}, {{nullptr}, {args.out<float>(0)}}, plan.n, stream);
}

}  // namespace

void add_elementwise_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_ADD, "add", map_size, each_floating([](auto x) { return run_add<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_SCALE, "scale", scale_of, each_floating([](auto x) { return run_scale<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_AXPBY, "axpby", axpby_of, each_floating([](auto x) { return run_axpby<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_CLAMP, "clamp", clamp_of, each_floating([](auto x) { return run_clamp<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_FILL, "fill", f32_fill, run_fill);
  add_op(device, GPUNN_OP_RELU, "relu", map_size, each_floating([](auto x) { return run_relu<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_RELU_BACKWARD, "relu_backward", map_size,
         each_floating([](auto x) { return run_relu_backward<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_tiled
