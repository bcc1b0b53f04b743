// SCALE, AXPBY, CLAMP, FILL, RELU, LEAKY_RELU, SIGMOID, TANH, GELU, SILU and their gradients. One thread computes one
// element.
//
// Neighbouring threads compute neighbouring elements, so the 32 threads of a warp read 128 contiguous bytes: the
// accesses are coalesced. No number is used twice, so the time is that of moving the bytes, even for erf and tanh. The
// next version would move 16 bytes a thread instead of 4, for fewer instructions and more loads in flight. Best is no
// separate kernel at all: an elementwise op costs least at the end of the kernel before it.
//
// A function object defines the operation on an element, so that one kernel serves all ops.
#include "common/elementwise.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

template <class T, class F>
__global__ void map(F f, const T* x, T* y, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) y[i] = static_cast<T>(f(static_cast<float>(x[i])));
}

template <class T, class F>
__global__ void map_two(F f, const T* a, const T* b, T* y, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) y[i] = static_cast<T>(f(static_cast<float>(a[i]), static_cast<float>(b[i])));
}

__device__ float sigmoid_of(float x) { return 1.0F / (1.0F + expf(-x)); }

struct Times {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};

struct WeightedSum {
  float alpha, beta;
  __device__ float operator()(float a, float b) const { return alpha * a + beta * b; }
};

// Not fminf and fmaxf, which drop a NaN.
struct Within {
  float low, high;
  __device__ float operator()(float x) const {
    const float raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};

struct Relu {
  __device__ float operator()(float x) const { return x < 0.0F ? 0.0F : x; }
};

struct ReluBackward {
  __device__ float operator()(float dy, float y) const { return y > 0.0F ? dy : 0.0F; }
};

struct Leaky {
  float slope;
  __device__ float operator()(float x) const { return x > 0.0F ? x : slope * x; }
};

struct LeakyBackward {
  float slope;
  __device__ float operator()(float dy, float x) const { return x > 0.0F ? dy : slope * dy; }
};

struct Sigmoid {
  __device__ float operator()(float x) const { return sigmoid_of(x); }
};

struct SigmoidBackward {
  __device__ float operator()(float dy, float y) const { return dy * y * (1.0F - y); }
};

struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};

struct TanhBackward {
  __device__ float operator()(float dy, float y) const { return dy * (1.0F - y * y); }
};

struct Silu {
  __device__ float operator()(float x) const { return x * sigmoid_of(x); }
};

struct SiluBackward {
  __device__ float operator()(float dy, float x) const {
    const float s = sigmoid_of(x);
    return dy * (s * (1.0F + x * (1.0F - s)));
  }
};

struct GeluByErf {
  __device__ float operator()(float x) const { return x * normcdff(x); }
};

struct GeluByErfBackward {
  __device__ float operator()(float dy, float x) const {
    const float density = 0.3989422804F * expf(-0.5F * x * x);
    return dy * (normcdff(x) + x * density);
  }
};

constexpr float kRootOfTwoByPi = 0.7978845608F;
constexpr float kCubic = 0.044715F;

// Beyond 16 the gate is 0 or 1, and x^3 could overflow. This way round a NaN passes.
__device__ float within_reach(float x) {
  const float above = x < -16.0F ? -16.0F : x;
  return above > 16.0F ? 16.0F : above;
}

// (1 + tanh(u)) / 2 is sigmoid(2 u).
__device__ float tanh_gate(float x) {
  const float near = within_reach(x);
  return sigmoid_of(2.0F * kRootOfTwoByPi * (near + kCubic * near * near * near));
}

struct GeluByTanh {
  __device__ float operator()(float x) const { return x * tanh_gate(x); }
};

struct GeluByTanhBackward {
  __device__ float operator()(float dy, float x) const {
    const float gate = tanh_gate(x), near = within_reach(x);
    const float slope = 2.0F * kRootOfTwoByPi * (1.0F + 3.0F * kCubic * near * near);
    return dy * (gate + x * (gate * (1.0F - gate) * slope));
  }
};

template <class T, class F>
void launch_map(F f, int64_t n, cudaStream_t stream, const OpArgs& args) {
  launch(map<T, F>, thread_each(n), stream, f, args.in<T>(0), args.out<T>(0), n);
}

template <class T, class F>
void launch_map_two(F f, int64_t n, cudaStream_t stream, const OpArgs& args) {
  launch(map_two<T, F>, thread_each(n), stream, f, args.in<T>(0), args.in<T>(1), args.out<T>(0), n);
}

template <class T, class F>
void run(int64_t n, cudaStream_t stream, const OpArgs& args) {
  launch_map<T>(F{}, n, stream, args);
}

template <class T, class F>
void run_elementwise_backward(int64_t n, cudaStream_t stream, const OpArgs& args) {
  launch_map_two<T>(F{}, n, stream, args);
}

template <class T>
void run_scale(const Scale& op, cudaStream_t stream, const OpArgs& args) {
  launch_map<T>(Times{op.factor}, op.n, stream, args);
}

template <class T>
void run_axpby(const Axpby& op, cudaStream_t stream, const OpArgs& args) {
  launch_map_two<T>(WeightedSum{op.alpha, op.beta}, op.n, stream, args);
}

template <class T>
void run_clamp(const Clamp& op, cudaStream_t stream, const OpArgs& args) {
  launch_map<T>(Within{op.low, op.high}, op.n, stream, args);
}

template <class T>
void run_leaky_relu(const LeakyRelu& op, cudaStream_t stream, const OpArgs& args) {
  launch_map<T>(Leaky{op.slope}, op.n, stream, args);
}

template <class T>
void run_leaky_relu_backward(const LeakyRelu& op, cudaStream_t stream, const OpArgs& args) {
  launch_map_two<T>(LeakyBackward{op.slope}, op.n, stream, args);
}

template <class T>
void run_gelu(const Gelu& op, cudaStream_t stream, const OpArgs& args) {
  if (op.tanh) return launch_map<T>(GeluByTanh{}, op.n, stream, args);
  launch_map<T>(GeluByErf{}, op.n, stream, args);
}

template <class T>
void run_gelu_backward(const Gelu& op, cudaStream_t stream, const OpArgs& args) {
  if (op.tanh) return launch_map_two<T>(GeluByTanhBackward{}, op.n, stream, args);
  launch_map_two<T>(GeluByErfBackward{}, op.n, stream, args);
}

template <class T>
__global__ void fill(T value, T* y, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) y[i] = value;
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
  add_op(device, GPUNN_OP_SCALE, "scale", scale_of, each_floating([](auto x) { return run_scale<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_AXPBY, "axpby", axpby_of, each_floating([](auto x) { return run_axpby<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_CLAMP, "clamp", clamp_of, each_floating([](auto x) { return run_clamp<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_FILL, "fill", fill_of, run_fill);
  add_op(device, GPUNN_OP_RELU, "relu", map_size, each_floating([](auto x) { return run<decltype(x), Relu>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_RELU_BACKWARD, "relu_backward", map_size,
         each_floating([](auto x) { return run_elementwise_backward<decltype(x), ReluBackward>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_LEAKY_RELU, "leaky_relu", leaky_relu_of,
         each_floating([](auto x) { return run_leaky_relu<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_LEAKY_RELU_BACKWARD, "leaky_relu_backward", leaky_relu_of,
         each_floating([](auto x) { return run_leaky_relu_backward<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_SIGMOID, "sigmoid", map_size, each_floating([](auto x) { return run<decltype(x), Sigmoid>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_SIGMOID_BACKWARD, "sigmoid_backward", map_size,
         each_floating([](auto x) { return run_elementwise_backward<decltype(x), SigmoidBackward>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_TANH, "tanh", map_size, each_floating([](auto x) { return run<decltype(x), Tanh>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_TANH_BACKWARD, "tanh_backward", map_size,
         each_floating([](auto x) { return run_elementwise_backward<decltype(x), TanhBackward>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_GELU, "gelu", gelu_of, each_floating([](auto x) { return run_gelu<decltype(x)>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_GELU_BACKWARD, "gelu_backward", gelu_of,
         each_floating([](auto x) { return run_gelu_backward<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_SILU, "silu", map_size, each_floating([](auto x) { return run<decltype(x), Silu>; }),
         Dtypes::floating);
  add_op(device, GPUNN_OP_SILU_BACKWARD, "silu_backward", map_size,
         each_floating([](auto x) { return run_elementwise_backward<decltype(x), SiluBackward>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
