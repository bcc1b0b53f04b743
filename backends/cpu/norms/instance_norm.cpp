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

#include "common/normalization.hpp"
#include "kernels.hpp"
#include "row_blocks.hpp"
#include "simd/normalization.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kBlockElements = 4096, kBlockPlanes = 512;

struct InstanceNormPlan {
  InstanceNorm shape{};
  const NormalizationLoops<float>* loops = nullptr;
  RowBlocks blocks{};
  uint64_t workspace_bytes = blocks.workspace_bytes();
};

// `tensors` of planes are widened at once.
InstanceNormPlan make_plan(const InstanceNorm& shape, int32_t dtype, int64_t tensors, int threads) {
  const int64_t block = std::clamp<int64_t>(kBlockElements / shape.terms(), 1, kBlockPlanes);
  return {.shape = shape,
          .loops = &GPUNN_SELECT_ISA(normalization_kernels).f32,
          .blocks = {.rows = shape.planes(),
                     .size = shape.size,
                     .block = block,
                     .strip = dtype == GPUNN_F32 ? 0 : tensors * block * shape.size,
                     .threads = threads,
                     .strips_from = shape.workspace_bytes}};
}

InstanceNormPlan plan_instance_norm(const OpDesc& desc, int threads) {
  return make_plan(instance_norm_of(desc), desc.input(0).dtype, 1, threads);
}

InstanceNormPlan plan_instance_norm_backward(const OpDesc& desc, int threads) {
  return make_plan(instance_norm_backward_of(desc), desc.input(0).dtype, 2, threads);
}

template <class T>
void run_instance_norm(const InstanceNormPlan& plan, const OpArgs& args) {
  const auto *gamma = args.in<float>(1), *beta = args.in<float>(2);
  auto *mean = args.out<float>(1), *rstd = args.out<float>(2);
  const InstanceNorm& shape = plan.shape;
  const auto terms = static_cast<double>(shape.terms());
  plan.blocks.for_each(args, [&](int64_t first, int64_t planes, float* strip) {
    const ChannelShape block{.rows = 1, .channels = planes, .size = shape.size};
    double sums[kBlockPlanes], squares[kBlockPlanes];
    float factor[kBlockPlanes], shift[kBlockPlanes];
    std::fill(sums, sums + block.channels, 0.0);
    std::fill(squares, squares + block.channels, 0.0);
    const int64_t begin = first * shape.size, n = block.channels * shape.size;
    const float* x = as_wide(args.in<T>(0) + begin, n, strip);
    T* y = args.out<T>(0) + begin;
    plan.loops->sum(x, sums, block);
    for (int64_t p = 0; p < block.channels; ++p) mean[first + p] = static_cast<float>(sums[p] / terms);
    plan.loops->squares(x, mean + first, squares, block);
    for (int64_t p = 0; p < block.channels; ++p) {
      const int64_t channel = (first + p) % shape.channels;
      const double inverse = 1.0 / std::sqrt(squares[p] / terms + static_cast<double>(shape.epsilon));
      rstd[first + p] = static_cast<float>(inverse);
      factor[p] = static_cast<float>(inverse * static_cast<double>(gamma[channel]));
      shift[p] = beta[channel];
    }
    plan.loops->apply(x, mean + first, factor, shift, nullptr, false, wide_target(y, strip), block);
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
  plan.blocks.for_each(args, [&](int64_t first, int64_t planes, float* strip) {
    const ChannelShape block{.rows = 1, .channels = planes, .size = shape.size};
    float factor[kBlockPlanes], offset[kBlockPlanes], slope[kBlockPlanes];
    const int64_t begin = first * shape.size, n = block.channels * shape.size;
    const float* dy = as_wide(args.in<T>(0) + begin, n, strip);
    const float* x = as_wide(args.in<T>(1) + begin, n, strip + plan.blocks.strip / 2);
    T* dx = args.out<T>(0) + begin;
    plan.loops->products(dy, x, mean + first, sums + first, products + first, block);
    for (int64_t p = 0; p < block.channels; ++p) {
      const int64_t plane = first + p;
      const auto inverse = static_cast<double>(rstd[plane]);
      factor[p] = gamma[plane % shape.channels] * rstd[plane];
      offset[p] = static_cast<float>(sums[plane] / terms);
      slope[p] = static_cast<float>(products[plane] * inverse * inverse / terms);
    }
    plan.loops->backward(dy, x, mean + first, factor, offset, slope, wide_target(dx, strip), block);
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
  add_floating_op(device, GPUNN_OP_INSTANCE_NORM, plan_instance_norm,
                  [](auto x) { return run_instance_norm<decltype(x)>; });
  add_floating_op(device, GPUNN_OP_INSTANCE_NORM_BACKWARD, plan_instance_norm_backward,
                  [](auto x) { return run_instance_norm_backward<decltype(x)>; });
}

}  // namespace gpunn::cpu
