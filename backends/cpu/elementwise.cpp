// Maps that have attributes, and FILL. COPY, which takes strides, is in copy.cpp.
#include "simd/elementwise.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <type_traits>

#include "add_op.hpp"
#include "common/elementwise.hpp"
#include "copy.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

const ElementwiseKernels& simd_elementwise() { return GPUNN_SELECT_ISA(elementwise_kernels); }

// y = f(x), by body(x, y, n).
template <class T, class Body>
void map(int64_t n, const OpArgs& args, const Body& body) {
  const auto* x = args.in<T>(0);
  auto* y = args.out<T>(0);
  parallel_ranges(n, kGrain, [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      body(x + begin, y + begin, end - begin);
    } else {
      float wide[kStretch], result[kStretch];
      for (int64_t i = begin; i < end; i += kStretch) {
        const int64_t count = std::min(kStretch, end - i);
        widen(x + i, 1, wide, count);
        body(wide, result, count);
        narrow(result, y + i, count);
      }
    }
  });
}

// y = f(a, b), by body(a, b, y, n).
template <class T, class Body>
void map_two(int64_t n, const OpArgs& args, const Body& body) {
  const auto *a = args.in<T>(0), *b = args.in<T>(1);
  auto* y = args.out<T>(0);
  parallel_ranges(n, kGrain, [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      body(a + begin, b + begin, y + begin, end - begin);
    } else {
      float wide_a[kStretch], wide_b[kStretch], result[kStretch];
      for (int64_t i = begin; i < end; i += kStretch) {
        const int64_t count = std::min(kStretch, end - i);
        widen(a + i, 1, wide_a, count);
        widen(b + i, 1, wide_b, count);
        body(wide_a, wide_b, result, count);
        narrow(result, y + i, count);
      }
    }
  });
}

template <class T>
void run_scale(const Scale& plan, const OpArgs& args) {
  map<T>(plan.n, args, [&](const float* x, float* y, int64_t n) { simd_elementwise().scale(x, plan.factor, y, n); });
}

template <class T>
void run_axpby(const Axpby& plan, const OpArgs& args) {
  map_two<T>(plan.n, args, [&](const float* a, const float* b, float* y, int64_t n) {
    simd_elementwise().axpby(plan.alpha, a, plan.beta, b, y, n);
  });
}

template <class T>
void run_clamp(const Clamp& plan, const OpArgs& args) {
  map<T>(plan.n, args,
         [&](const float* x, float* y, int64_t n) { simd_elementwise().clamp(x, plan.low, plan.high, y, n); });
}

template <class T>
void run_leaky_relu(const LeakyRelu& plan, const OpArgs& args) {
  map<T>(plan.n, args,
         [&](const float* x, float* y, int64_t n) { simd_elementwise().leaky_relu(x, plan.slope, y, n); });
}

template <class T>
void run_leaky_relu_backward(const LeakyRelu& plan, const OpArgs& args) {
  map_two<T>(plan.n, args, [&](const float* dy, const float* x, float* dx, int64_t n) {
    simd_elementwise().leaky_relu_backward(dy, x, plan.slope, dx, n);
  });
}

template <class T>
void run_gelu(const Gelu& plan, const OpArgs& args) {
  const Unary run = plan.tanh ? simd_elementwise().gelu_tanh : simd_elementwise().gelu_erf;
  map<T>(plan.n, args, [run](const float* x, float* y, int64_t n) { run({x, 1}, y, n); });
}

template <class T>
void run_gelu_backward(const Gelu& plan, const OpArgs& args) {
  const Binary run = plan.tanh ? simd_elementwise().gelu_tanh_backward : simd_elementwise().gelu_erf_backward;
  map_two<T>(plan.n, args, [run](const float* dy, const float* x, float* dx, int64_t n) {
    run({dy, 1}, {x, 1}, dx, n);
  });
}

template <class T>
void fill(const Fill& plan, const OpArgs& args) {
  auto* y = args.out<T>(0);
  const T value = static_cast<T>(plan.value);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, value); });
}

void run_fill(const Fill& plan, const OpArgs& args) {
  switch (plan.dtype) {
    case GPUNN_F32:
      return fill<float>(plan, args);
    case GPUNN_F64:
      return fill<double>(plan, args);
    case GPUNN_I32:
      return fill<int32_t>(plan, args);
    case GPUNN_I64:
      return fill<int64_t>(plan, args);
    default:
      return fill<uint8_t>(plan, args);
  }
}

}  // namespace

void add_elementwise_kernels(plugin::Device& device) {
  serve(device, GPUNN_OP_SCALE, scale_of, each_floating([](auto x) { return run_scale<decltype(x)>; }),
        Dtypes::floating);
  serve(device, GPUNN_OP_AXPBY, axpby_of, each_floating([](auto x) { return run_axpby<decltype(x)>; }),
        Dtypes::floating);
  serve(device, GPUNN_OP_CLAMP, clamp_of, each_floating([](auto x) { return run_clamp<decltype(x)>; }),
        Dtypes::floating);
  serve(device, GPUNN_OP_LEAKY_RELU, leaky_relu_of, each_floating([](auto x) { return run_leaky_relu<decltype(x)>; }),
        Dtypes::floating);
  serve(device, GPUNN_OP_LEAKY_RELU_BACKWARD, leaky_relu_of,
        each_floating([](auto x) { return run_leaky_relu_backward<decltype(x)>; }), Dtypes::floating);
  serve(device, GPUNN_OP_GELU, gelu_of, each_floating([](auto x) { return run_gelu<decltype(x)>; }), Dtypes::floating);
  serve(device, GPUNN_OP_GELU_BACKWARD, gelu_of, each_floating([](auto x) { return run_gelu_backward<decltype(x)>; }),
        Dtypes::floating);
  add_op(device, GPUNN_OP_FILL, fill_of, run_fill);
  add_op(device, GPUNN_OP_COPY, plan_copy, run_copy, Dtypes::floating);
}

}  // namespace gpunn::cpu
