// ADD, SCALE, AXPBY, CLAMP, FILL of f32, and ReLU and its gradient, by the kernel of each.cuh.
#include <type_traits>

#include "common/elementwise.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/formulas.cuh"
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

template <int32_t op>
struct Elementwise {
  int64_t n = 0;
  formulas::Formula<op> formula = {};
};

template <int32_t op>
Elementwise<op> elementwise_of(const OpDesc& desc) {
  return {.n = map_size(desc), .formula = {desc.attrs<plugin::OpAttrs<op>>()}};
}

template <class T, int32_t op>
void run_elementwise(const Elementwise<op>& plan, cudaStream_t stream, const OpArgs& args) {
  using F = formulas::Formula<op>;
  if constexpr (std::is_invocable_v<F, float>) {
    each<T>(Map<F>{plan.formula}, {{args.in<T>(0)}, {args.out<T>(0)}}, plan.n, stream);
  } else {
    each<T>(Map2<F>{plan.formula}, {{args.in<T>(0), args.in<T>(1)}, {args.out<T>(0)}}, plan.n, stream);
  }
}

template <int32_t op>
void serve_elementwise(TiledDevice& device, const char* name) {
  add_op(device, op, name, elementwise_of<op>, each_floating([](auto x) { return run_elementwise<decltype(x), op>; }),
         Dtypes::floating);
}

struct Constant {
  static constexpr int kReads = 0, kWrites = 1;
  float value;
  __device__ void begin() {}
  __device__ void operator()(int64_t /*i*/, const float (&/*in*/)[1], float (&out)[1]) const { out[0] = value; }
};

Fill f32_fill(const OpDesc& desc) {
  const Fill plan = fill_of(desc);
  require(plan.dtype == GPUNN_F32, "only f32 gains here");
  return plan;
}

void run_fill(const Fill& plan, cudaStream_t stream, const OpArgs& args) {
  each(Constant{static_cast<float>(plan.value)}, {{nullptr}, {args.out<float>(0)}}, plan.n, stream);
}

}  // namespace

void add_elementwise_kernels(TiledDevice& device) {
  serve_elementwise<GPUNN_OP_ADD>(device, "add");
  serve_elementwise<GPUNN_OP_SCALE>(device, "scale");
  serve_elementwise<GPUNN_OP_AXPBY>(device, "axpby");
  serve_elementwise<GPUNN_OP_CLAMP>(device, "clamp");
  serve_elementwise<GPUNN_OP_RELU>(device, "relu");
  serve_elementwise<GPUNN_OP_RELU_BACKWARD>(device, "relu_backward");
  add_op(device, GPUNN_OP_FILL, "fill", f32_fill, run_fill);
}

}  // namespace gpunn::cuda_tiled
