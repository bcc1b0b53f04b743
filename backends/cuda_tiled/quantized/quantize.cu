// QUANTIZE, DEQUANTIZE and FAKE_QUANTIZE at the speed of memory: four numbers for each thread and access, four accesses
// in flight.
#include <cstdint>

#include "common/quantization.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/quantization.cuh"
#include "device.hpp"
#include "elementwise/each.cuh"
#include "kernels.hpp"
#include "pack.cuh"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;

constexpr int kQuantizeWidth = 4, kQuantizeSteps = 4;

// The number that stands for x; 0 for a NaN.
struct Stored {
  float scale, zero_point;
  __device__ uint8_t operator()(float x) const { return stored(x / scale, zero_point); }
};

struct Meant {
  float scale, zero_point;
  __device__ float operator()(float q) const { return (q - zero_point) * scale; }
};

// What each<float>() takes.
struct Faked {
  static constexpr int kReads = 1, kWrites = 1;
  Stored number;
  Meant meant;
  __device__ void begin() {}
  __device__ void operator()(int64_t /*i*/, const float (&in)[1], float (&out)[1]) const {
    out[0] = meant(static_cast<float>(number(in[0])));
  }
};

template <class From, class To, class F>
__global__ void __launch_bounds__(kThreads) convert(F f, const From* x, To* y, int64_t n) {
  using Source = Pack<From, kQuantizeWidth>;
  using Result = Pack<To, kQuantizeWidth>;
  const int64_t first = (int64_t{blockIdx.x} * kQuantizeSteps * kThreads + threadIdx.x) * kQuantizeWidth;
  constexpr int64_t kStep = int64_t{kThreads} * kQuantizeWidth;
  const int64_t end = n / kQuantizeWidth * kQuantizeWidth;
  Source in[kQuantizeSteps];
#pragma unroll
  for (int s = 0; s < kQuantizeSteps; ++s) {
    if (first + s * kStep < end) in[s] = *reinterpret_cast<const Source*>(x + first + s * kStep);
  }
#pragma unroll
  for (int s = 0; s < kQuantizeSteps; ++s) {
    if (first + s * kStep >= end) break;
    Result out;
#pragma unroll
    for (int k = 0; k < kQuantizeWidth; ++k) {
      out.values[k] = static_cast<To>(f(static_cast<float>(in[s].values[k])));
    }
    *reinterpret_cast<Result*>(y + first + s * kStep) = out;
  }
  const int64_t i = end + threadIdx.x;
  if (blockIdx.x == 0 && i < n) y[i] = static_cast<To>(f(static_cast<float>(x[i])));
}

template <class From, class To, class F>
void launch_convert(const F& f, int64_t n, cudaStream_t stream, const OpArgs& args) {
  constexpr int64_t kOfBlock = int64_t{kThreads} * kQuantizeWidth * kQuantizeSteps;
  launch(convert<From, To, F>, block_each(divide_up(n, kOfBlock)), stream, f, args.in<From>(0), args.out<To>(0), n);
}

void run_quantize(const Quantize& by, cudaStream_t stream, const OpArgs& args) {
  launch_convert<float, uint8_t>(Stored{by.scale, by.zero_point}, by.n, stream, args);
}

void run_dequantize(const Quantize& by, cudaStream_t stream, const OpArgs& args) {
  launch_convert<uint8_t, float>(Meant{by.scale, by.zero_point}, by.n, stream, args);
}

void run_fake_quantize(const Quantize& by, cudaStream_t stream, const OpArgs& args) {
  each<float>(Faked{{by.scale, by.zero_point}, {by.scale, by.zero_point}}, {{args.in<float>(0)}, {args.out<float>(0)}},
              by.n, stream);
}

}  // namespace

void add_quantize_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_QUANTIZE, "quantize", quantize_of, run_quantize, Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_DEQUANTIZE, "dequantize", quantize_of, run_dequantize, Dtypes::f32,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_FAKE_QUANTIZE, "fake_quantize", quantize_of, run_fake_quantize, Dtypes::f32,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_tiled
