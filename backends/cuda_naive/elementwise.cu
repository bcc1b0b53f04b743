// The element-wise ops, with broadcasting, and FILL. One thread computes one element of y.
//
// Neighbouring threads compute neighbouring elements, so the 32 threads of a warp read 128 contiguous bytes: the
// accesses are coalesced. No number is used twice, so the time is that of moving the bytes, even for erf and tanh. The
// next version would move 16 bytes a thread instead of 4, for fewer instructions and more loads in flight. Best is no
// separate kernel at all: an elementwise op costs least at the end of the kernel before it.
//
// With a broadcast operand each thread splits its index with one division a dimension, which costs more than the
// arithmetic. The repeated numbers come from the cache. The next version would divide by multiplying, and keep one row
// of the broadcast operand in each thread block.
//
// A function object defines the operation on an element, so that one kernel serves all ops: those of
// gpunn/op_formulas.inc.
#include <cstddef>
#include <type_traits>
#include <utility>

#include "common/broadcast.hpp"
#include "common/elementwise.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/formulas.cuh"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

template <class F, class T, class... Operand>
__global__ void map(F f, int64_t n, T* y, const Operand*... x) {
  const int64_t i = thread_index();
  if (i < n) y[i] = static_cast<T>(f(static_cast<float>(x[i])...));
}

// Where element i of y finds its operand.
__device__ int64_t offset_of(const Broadcast& plan, std::size_t operand, int64_t i) {
  int64_t offset = 0;
  for (int32_t k = plan.rank - 1; k > 0; --k) {
    offset += i % plan.dim[k] * plan.stride[operand][k];
    i /= plan.dim[k];
  }
  return offset + i * plan.stride[operand][0];
}

template <class F, class T, std::size_t... k>
__device__ void map_element(const F& f, const Broadcast& plan, T* y, const T* const (&x)[sizeof...(k)], int64_t i,
                            std::index_sequence<k...> /*operands*/) {
  y[i] = static_cast<T>(f(static_cast<float>(x[k][offset_of(plan, k, i)])...));
}

template <class F, class T, class... Operand>
__global__ void map_broadcast(F f, Broadcast plan, T* y, const Operand*... x) {
  const int64_t i = thread_index();
  if (i < plan.n) map_element(f, plan, y, {x...}, i, std::index_sequence_for<Operand...>());
}

template <int32_t op>
struct Elementwise {
  Broadcast loops;
  formulas::Formula<op> formula;
};

template <int32_t op>
Elementwise<op> elementwise_of(const OpDesc& desc) {
  return {.loops = broadcast_of(desc), .formula = {desc.attrs<plugin::OpAttrs<op>>()}};
}

template <class T, std::size_t>
using Repeated = T;

template <class T, int32_t op, std::size_t... k>
void run_operands(const Elementwise<op>& plan, cudaStream_t stream, const OpArgs& args,
                  std::index_sequence<k...> /*operands*/) {
  using F = formulas::Formula<op>;
  const Broadcast& loops = plan.loops;
  const bool broadcast = loops.rank > 1 || ((loops.stride[k][0] != 1) || ...);
  if (broadcast) {
    launch(map_broadcast<F, T, Repeated<T, k>...>, thread_each(loops.n), stream, plan.formula, loops, args.out<T>(0),
           args.in<T>(k)...);
  } else {
    launch(map<F, T, Repeated<T, k>...>, thread_each(loops.n), stream, plan.formula, loops.n, args.out<T>(0),
           args.in<T>(k)...);
  }
}

template <class F>
constexpr std::size_t operands_of() {
  return std::is_invocable_v<F, float> ? 1 : std::is_invocable_v<F, float, float> ? 2 : 3;
}

template <class T, int32_t op>
void run_elementwise(const Elementwise<op>& plan, cudaStream_t stream, const OpArgs& args) {
  run_operands<T>(plan, stream, args, std::make_index_sequence<operands_of<formulas::Formula<op>>()>());
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
#define GPUNN_FORMULA(op, parameters, ...)                                                                    \
  add_op(device, GPUNN_OP_##op, #op, elementwise_of<GPUNN_OP_##op>,                                           \
         each_floating([](auto x) { return run_elementwise<decltype(x), GPUNN_OP_##op>; }), Dtypes::floating, \
         Layouts::channels_last_too);
#define GPUNN_FORMULA_PART(name, parameters, ...)
#define GPUNN_UPDATE(op, parameters, ...)
#include <gpunn/op_formulas.inc>
#undef GPUNN_FORMULA
#undef GPUNN_FORMULA_PART
#undef GPUNN_UPDATE
  add_op(device, GPUNN_OP_FILL, "FILL", fill_of, run_fill);
}

}  // namespace gpunn::cuda_naive
