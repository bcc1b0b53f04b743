// INSTANCE_NORM and its backward, by planes: a plane is a channel of a row.
//
// A task takes planes in blocks that stay in the nearest cache, so that memory sees one of the passes over them: the
// mean, the squares of the differences from it, and y; backwards the two sums, and dx. The loops over a block are batch
// norm's, of a single row whose channels are the planes. Blocks of half precision are widened first. Sums by channel
// are added by row, from what each plane leaves.
#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "add_op.hpp"
#include "common/normalization.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"
#include "simd/normalization.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kBlockElements = 4096, kBlockPlanes = 512;

struct InstanceNormPlan {
  InstanceNorm shape{};
  const NormalizationKernels* kernels = nullptr;
  int threads = 1;
  int64_t block_planes = 1;   // at most
  int64_t thread_floats = 0;  // the blocks of half precision that are widened at once
  uint64_t workspace_bytes = 0;
};

InstanceNormPlan make_plan(const InstanceNorm& shape, int32_t dtype, int64_t tensors, int threads) {
  InstanceNormPlan plan{.shape = shape,
                        .kernels = &GPUNN_SELECT_ISA(normalization_kernels),
                        .threads = threads,
                        .block_planes = std::clamp<int64_t>(kBlockElements / shape.terms(), 1, kBlockPlanes)};
  if (dtype != GPUNN_F32) plan.thread_floats = tensors * plan.block_planes * shape.size;
  plan.workspace_bytes = shape.workspace_bytes + static_cast<uint64_t>(threads * plan.thread_floats) * sizeof(float);
  return plan;
}

// Calls body(first plane, the block as a row, the thread's workspace) for each block.
template <class Body>
void for_blocks(const InstanceNormPlan& plan, const OpArgs& args, const Body& body) {
  const InstanceNorm& shape = plan.shape;
  auto* const strips = reinterpret_cast<float*>(args.workspace<char>() + shape.workspace_bytes);
  const int64_t at_once = rows_per_task(shape.size);
  parallel_for(plan.threads, divide_up(shape.planes(), at_once), [&](int64_t task, int thread) {
    const int64_t end = std::min(shape.planes(), (task + 1) * at_once);
    for (int64_t first = task * at_once; first < end; first += plan.block_planes) {
      body(first, ChannelShape{.rows = 1, .channels = std::min(plan.block_planes, end - first), .size = shape.size},
           strips + thread * plan.thread_floats);
    }
  });
}

template <class T>
void run_instance_norm(const InstanceNormPlan& plan, const OpArgs& args) {
  const auto *gamma = args.in<float>(1), *beta = args.in<float>(2);
  auto *mean = args.out<float>(1), *rstd = args.out<float>(2);
  const InstanceNorm& shape = plan.shape;
  const auto terms = static_cast<double>(shape.terms());
  for_blocks(plan, args, [&](int64_t first, const ChannelShape& block, float* strip) {
    double sums[kBlockPlanes], squares[kBlockPlanes];
    float factor[kBlockPlanes], shift[kBlockPlanes];
    std::fill(sums, sums + block.channels, 0.0);
    std::fill(squares, squares + block.channels, 0.0);
    const int64_t begin = first * shape.size, n = block.channels * shape.size;
    const float* x = as_wide(args.in<T>(0) + begin, n, strip);
    T* y = args.out<T>(0) + begin;
    plan.kernels->sum(x, sums, block);
    for (int64_t p = 0; p < block.channels; ++p) mean[first + p] = static_cast<float>(sums[p] / terms);
    plan.kernels->squares(x, mean + first, squares, block);
    for (int64_t p = 0; p < block.channels; ++p) {
      const int64_t channel = (first + p) % shape.channels;
      const double inverse = 1.0 / std::sqrt(squares[p] / terms + static_cast<double>(shape.epsilon));
      rstd[first + p] = static_cast<float>(inverse);
      factor[p] = static_cast<float>(inverse * static_cast<double>(gamma[channel]));
      shift[p] = beta[channel];
    }
    plan.kernels->apply(x, mean + first, factor, shift, nullptr, false, wide_target(y, strip), block);
    put_narrow(strip, y, n);
  });
}

template <class T>
void run_instance_norm_backward(const InstanceNormPlan& plan, const OpArgs& args) {
  const auto *gamma = args.in<float>(2), *mean = args.in<float>(3), *rstd = args.in<float>(4);
  auto *dgamma = args.out<float>(1), *dbeta = args.out<float>(2);
  const InstanceNorm& shape = plan.shape;
  const auto terms = static_cast<double>(shape.terms());
  // Of each plane the sums of dy and of dy (x - mean).
  auto* sums = args.workspace<double>();
  double* products = sums + shape.planes();
  std::fill(sums, sums + 2 * shape.planes(), 0.0);
  for_blocks(plan, args, [&](int64_t first, const ChannelShape& block, float* strip) {
    float factor[kBlockPlanes], offset[kBlockPlanes], slope[kBlockPlanes];
    const int64_t begin = first * shape.size, n = block.channels * shape.size;
    const float* dy = as_wide(args.in<T>(0) + begin, n, strip);
    const float* x = as_wide(args.in<T>(1) + begin, n, strip + plan.thread_floats / 2);
    T* dx = args.out<T>(0) + begin;
    plan.kernels->products(dy, x, mean + first, sums + first, products + first, block);
    for (int64_t p = 0; p < block.channels; ++p) {
      const int64_t plane = first + p;
      const auto inverse = static_cast<double>(rstd[plane]);
      factor[p] = gamma[plane % shape.channels] * rstd[plane];
      offset[p] = static_cast<float>(sums[plane] / terms);
      slope[p] = static_cast<float>(products[plane] * inverse * inverse / terms);
    }
    plan.kernels->backward(dy, x, mean + first, factor, offset, slope, wide_target(dx, strip), block);
    put_narrow(strip, dx, n);
  });
  parallel_ranges(shape.channels, rows_per_task(shape.rows), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double product = 0, sum = 0;
      for (int64_t plane = c; plane < shape.planes(); plane += shape.channels) {
        product += products[plane] * static_cast<double>(rstd[plane]);
        sum += sums[plane];
      }
      dgamma[c] = static_cast<float>(product);
      dbeta[c] = static_cast<float>(sum);
    }
  });
}

}  // namespace

void add_instance_norm_kernels(plugin::Device& device) {
  const int threads = thread_count();
  serve(
      device, GPUNN_OP_INSTANCE_NORM,
      [threads](const OpDesc& desc) { return make_plan(instance_norm_of(desc), desc.input(0).dtype, 1, threads); },
      each_floating([](auto x) { return run_instance_norm<decltype(x)>; }), Dtypes::floating);
  serve(
      device, GPUNN_OP_INSTANCE_NORM_BACKWARD,
      [threads](const OpDesc& desc) {
        return make_plan(instance_norm_backward_of(desc), desc.input(0).dtype, 2, threads);
      },
      each_floating([](auto x) { return run_instance_norm_backward<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cpu
