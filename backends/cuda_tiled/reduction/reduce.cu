// REDUCE over any axes.
//
// If x's innermost dimension is reduced, the terms of an output are runs of neighbours, which its threads read four at
// a time. If it is kept, a thread block computes 32 neighbouring outputs and walks down their terms, with one row of 32
// neighbours for each warp. In both cases an output's terms are split into as many parts as fill the GPU, and a second
// kernel adds the parts in their order: equal inputs give equal bits. Multiplications instead of divisions turn a
// term's number into its position (divider.cuh).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "architecture.hpp"
#include "common/reduction.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/combine.cuh"
#include "cuda_common/divide_up.hpp"
#include "cuda_common/launch.hpp"
#include "device.hpp"
#include "divider.cuh"
#include "kernels.hpp"
#include "warp.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace cuda;
using backends::Nest;
using backends::Reduce;
using backends::Refusal;

constexpr int kBlock = 256;
constexpr int kRowsOfBlock = kBlock / kWarp;  // of a block that walks down columns
constexpr int kBlocksPerMultiprocessor = 4;
constexpr int64_t kLeastTermsOfPart = 1024;

// A nest whose offsets are found without division.
struct Places {
  int rank = 0;
  Divider dim[GPUNN_MAX_RANK];
  int stride[GPUNN_MAX_RANK] = {};

  Places() = default;
  // `innermost` elements are one step of the innermost dimension.
  explicit Places(const Nest& nest, int64_t innermost = 1) : rank(nest.rank) {
    for (int i = 0; i < rank; ++i) {
      const int64_t unit = i == rank - 1 ? innermost : 1;
      dim[i] = Divider(nest.dim[i] / unit);
      stride[i] = static_cast<int>(nest.stride[i] * unit);
    }
  }
  __device__ __forceinline__ int operator()(int index) const {
    int sum = 0;
    for (int i = rank - 1; i > 0; --i) {
      const Divider::Result at = dim[i](index);
      sum += at.rest * stride[i];
      index = at.quotient;
    }
    return rank == 0 ? 0 : sum + index * stride[0];
  }
};

struct ReducePlan {
  Places kept, reduced;
  int kind = GPUNN_REDUCE_SUM;
  bool runs = false;  // the innermost dimension is reduced
  int width = 1;      // elements of a read, of runs
  int outputs = 0;
  int terms = 0;  // of an output, in reads
  int parts = 1;
  int terms_of_part = 0;
  float factor = 1.0F;  // of a sum, for the mean
  uint64_t workspace_bytes = 0;
};

ReducePlan plan_reduce(const OpDesc& desc) {
  const Reduce shape = backends::reduce_of(desc);
  if (plugin::element_count(desc.input(0)) > std::numeric_limits<int>::max() || shape.outputs < 1 || shape.terms < 1) {
    throw Refusal("is for 1 to 2^31 - 1 elements");
  }
  ReducePlan plan;
  plan.kind = shape.kind;
  plan.runs = shape.innermost_is_reduced;
  plan.outputs = static_cast<int>(shape.outputs);
  if (shape.kind == GPUNN_REDUCE_MEAN) plan.factor = 1.0F / static_cast<float>(shape.terms);
  // The strides of all other dimensions are multiples of the innermost one, as x has no gaps.
  if (plan.runs && shape.reduced.dim[shape.reduced.rank - 1] % 4 == 0) plan.width = 4;
  plan.kept = Places(shape.kept);
  plan.reduced = Places(shape.reduced, plan.width);
  plan.terms = static_cast<int>(shape.terms / plan.width);
  const int64_t blocks = plan.runs ? shape.outputs : divide_up(shape.outputs, int64_t{kWarp});
  const int64_t wanted = divide_up(int64_t{multiprocessors()} * kBlocksPerMultiprocessor, blocks);
  const int64_t most = std::max<int64_t>(1, shape.terms * (plan.runs ? 1 : kWarp) / kLeastTermsOfPart);
  plan.terms_of_part = static_cast<int>(divide_up(int64_t{plan.terms}, std::clamp<int64_t>(wanted, 1, most)));
  plan.parts = static_cast<int>(divide_up(int64_t{plan.terms}, int64_t{plan.terms_of_part}));
  if (plan.parts > 1)
    plan.workspace_bytes = sizeof(float) * static_cast<uint64_t>(plan.outputs) * static_cast<uint64_t>(plan.parts);
  return plan;
}

template <class Combine>
__device__ __forceinline__ float among_warp(float mine) {
  const Combine combine;
#pragma unroll
  for (int reach = kWarp / 2; reach > 0; reach /= 2) mine = combine(mine, __shfl_xor_sync(kEveryLane, mine, reach));
  return mine;
}

// Of all of the block's threads, for the first of them.
template <class Combine>
__device__ __forceinline__ float among_block(float mine) {
  __shared__ float of_warp[kBlock / kWarp];
  mine = among_warp<Combine>(mine);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = mine;
  __syncthreads();
  if (threadIdx.x >= kWarp) return mine;
  return among_warp<Combine>(threadIdx.x < kBlock / kWarp ? of_warp[threadIdx.x] : Combine::nothing());
}

// An output, or a part of one, where there are several: parts are [outputs, parts].
__device__ __forceinline__ void store(const ReducePlan& plan, float* y, int output, int part, float total) {
  y[int64_t{output} * plan.parts + part] = plan.parts == 1 ? total * plan.factor : total;
}

// One read of `width` elements; x may be misaligned where it is a part of another tensor.
template <int width>
__device__ __forceinline__ void read(const float* from, bool aligned, float (&to)[width]) {
  if constexpr (width == 4) {
    if (aligned) {
      const float4 quad = *reinterpret_cast<const float4*>(from);
      to[0] = quad.x, to[1] = quad.y, to[2] = quad.z, to[3] = quad.w;
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < width; ++i) to[i] = from[i];
}

template <class Combine, int width>
__device__ __forceinline__ float over_runs(const float* from, const ReducePlan& plan, int begin, int end, int step) {
  const Combine combine;
  const bool aligned = reinterpret_cast<uintptr_t>(from) % (width * sizeof(float)) == 0;
  float total[width];
  for (float& one : total) one = Combine::nothing();
  for (int term = begin; term < end; term += step) {
    float mine[width];
    read(from + plan.reduced(term), aligned, mine);
#pragma unroll
    for (int i = 0; i < width; ++i) total[i] = combine(total[i], mine[i]);
  }
  if constexpr (width == 4) return combine(combine(total[0], total[1]), combine(total[2], total[3]));
  return total[0];
}

// A block a part of an output.
template <class Combine, int width>
__global__ void reduce_runs_by_block(const float* x, float* y, ReducePlan plan) {
  const int output = static_cast<int>(blockIdx.x);
  const int part = static_cast<int>(blockIdx.y);
  const int begin = part * plan.terms_of_part;
  const int end = min(begin + plan.terms_of_part, plan.terms);
  const float mine =
      over_runs<Combine, width>(x + plan.kept(output), plan, begin + static_cast<int>(threadIdx.x), end, kBlock);
  const float total = among_block<Combine>(mine);
  if (threadIdx.x == 0) store(plan, y, output, part, total);
}

// A warp an output, of few terms.
template <class Combine, int width>
__global__ void reduce_runs_by_warp(const float* x, float* y, ReducePlan plan) {
  const auto output = static_cast<int>((int64_t{blockIdx.x} * kBlock + threadIdx.x) / kWarp);
  if (output >= plan.outputs) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const float mine = over_runs<Combine, width>(x + plan.kept(output), plan, lane, plan.terms, kWarp);
  const float total = among_warp<Combine>(mine);
  if (lane == 0) store(plan, y, output, 0, total);
}

// 32 neighbouring outputs a block, a thread of each warp for each.
template <class Combine>
__global__ void reduce_columns(const float* x, float* y, ReducePlan plan) {
  const Combine combine;
  __shared__ float of_row[kRowsOfBlock][kWarp];
  const int column = static_cast<int>(threadIdx.x) % kWarp;
  const int row = static_cast<int>(threadIdx.x) / kWarp;
  const int output = static_cast<int>(blockIdx.x) * kWarp + column;
  const int part = static_cast<int>(blockIdx.y);
  const int begin = part * plan.terms_of_part;
  const int end = min(begin + plan.terms_of_part, plan.terms);
  const bool there = output < plan.outputs;
  const float* const from = x + plan.kept(there ? output : 0);
  float total = Combine::nothing();
#pragma unroll 4
  for (int term = begin + row; term < end; term += kRowsOfBlock) total = combine(total, from[plan.reduced(term)]);
  of_row[row][column] = total;
  __syncthreads();
  if (row != 0 || !there) return;
#pragma unroll
  for (int other = 1; other < kRowsOfBlock; ++other) total = combine(total, of_row[other][column]);
  store(plan, y, output, part, total);
}

// A warp an output.
template <class Combine>
__global__ void add_parts(const float* parts, float* y, ReducePlan plan) {
  const Combine combine;
  const auto output = static_cast<int>((int64_t{blockIdx.x} * kBlock + threadIdx.x) / kWarp);
  if (output >= plan.outputs) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float total = Combine::nothing();
  for (int part = lane; part < plan.parts; part += kWarp) {
    total = combine(total, parts[int64_t{output} * plan.parts + part]);
  }
  total = among_warp<Combine>(total);
  if (lane == 0) y[output] = total * plan.factor;
}

Launch blocks_of(int64_t blocks, int parts) {
  return {.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(parts)), .block = dim3(kBlock)};
}

Launch warp_each_output(const ReducePlan& plan) { return blocks_of(divide_up(plan.outputs, kBlock / kWarp), 1); }

template <class Combine, int width>
void reduce_runs(const ReducePlan& plan, cudaStream_t stream, const float* x, float* y) {
  if (plan.parts == 1 && plan.terms <= kBlock) {
    launch(reduce_runs_by_warp<Combine, width>, warp_each_output(plan), stream, x, y, plan);
  } else {
    launch(reduce_runs_by_block<Combine, width>, blocks_of(plan.outputs, plan.parts), stream, x, y, plan);
  }
}

template <class Combine>
void reduce(const ReducePlan& plan, cudaStream_t stream, const OpArgs& args) {
  const auto* const x = args.in<float>(0);
  auto* const y = args.out<float>(0);
  float* const to = plan.parts == 1 ? y : args.workspace<float>();
  if (!plan.runs) {
    launch(reduce_columns<Combine>, blocks_of(divide_up(plan.outputs, kWarp), plan.parts), stream, x, to, plan);
  } else if (plan.width == 4) {
    reduce_runs<Combine, 4>(plan, stream, x, to);
  } else {
    reduce_runs<Combine, 1>(plan, stream, x, to);
  }
  if (plan.parts > 1) launch(add_parts<Combine>, warp_each_output(plan), stream, to, y, plan);
}

void run_reduce(const ReducePlan& plan, cudaStream_t stream, const OpArgs& args) {
  if (plan.kind == GPUNN_REDUCE_MAX) {
    reduce<Larger>(plan, stream, args);
  } else {
    reduce<Sum>(plan, stream, args);
  }
}

}  // namespace

void add_reduce_kernels(TiledDevice& device) {
  add_op(device, GPUNN_OP_REDUCE, "reduce", plan_reduce, run_reduce, Dtypes::f32, Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_tiled
