// INSTANCE_NORM and its backward, by planes: a plane is a channel of a row.
//
// A task takes planes in blocks that stay in the nearest cache, so that memory sees one of the passes over them: the
// mean, the squares of the differences from it, and y; backwards the two sums, and dx. The loops over a block are batch
// norm's, of a single row whose channels are the planes. Sums by channel are added by row, from what each plane leaves.
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
  uint64_t workspace_bytes = 0;
};

InstanceNormPlan make_plan(const InstanceNorm& shape) {
  return {
      .shape = shape, .kernels = &GPUNN_SELECT_ISA(normalization_kernels), .workspace_bytes = shape.workspace_bytes};
}

InstanceNormPlan plan_instance_norm(const OpDesc& desc) { return make_plan(instance_norm_of(desc)); }
InstanceNormPlan plan_instance_norm_backward(const OpDesc& desc) { return make_plan(instance_norm_backward_of(desc)); }

// Calls body(first plane, the block as a row) for each block.
template <class Body>
void for_blocks(const InstanceNorm& shape, const Body& body) {
  const int64_t most = std::clamp<int64_t>(kBlockElements / shape.terms(), 1, kBlockPlanes);
  parallel_ranges(shape.planes(), rows_per_task(shape.size), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += most) {
      body(first, ChannelShape{.rows = 1, .channels = std::min(most, end - first), .size = shape.size});
    }
  });
}

void run_forward(const InstanceNormPlan& plan, const OpArgs& args) {
  const auto *x = args.in<float>(0), *gamma = args.in<float>(1), *beta = args.in<float>(2);
  auto *y = args.out<float>(0), *mean = args.out<float>(1), *rstd = args.out<float>(2);
  const InstanceNorm& shape = plan.shape;
  const auto terms = static_cast<double>(shape.terms());
  for_blocks(shape, [&](int64_t first, const ChannelShape& block) {
    double sums[kBlockPlanes], squares[kBlockPlanes];
    float factor[kBlockPlanes], shift[kBlockPlanes];
    std::fill(sums, sums + block.channels, 0.0);
    std::fill(squares, squares + block.channels, 0.0);
    const int64_t begin = first * shape.size;
    plan.kernels->sum(x + begin, sums, block);
    for (int64_t p = 0; p < block.channels; ++p) mean[first + p] = static_cast<float>(sums[p] / terms);
    plan.kernels->squares(x + begin, mean + first, squares, block);
    for (int64_t p = 0; p < block.channels; ++p) {
      const int64_t channel = (first + p) % shape.channels;
      const double inverse = 1.0 / std::sqrt(squares[p] / terms + static_cast<double>(shape.epsilon));
      rstd[first + p] = static_cast<float>(inverse);
      factor[p] = static_cast<float>(inverse * static_cast<double>(gamma[channel]));
      shift[p] = beta[channel];
    }
    plan.kernels->apply(x + begin, mean + first, factor, shift, nullptr, false, y + begin, block);
  });
}

void run_backward(const InstanceNormPlan& plan, const OpArgs& args) {
  const auto *dy = args.in<float>(0), *x = args.in<float>(1), *gamma = args.in<float>(2), *mean = args.in<float>(3),
             *rstd = args.in<float>(4);
  auto *dx = args.out<float>(0), *dgamma = args.out<float>(1), *dbeta = args.out<float>(2);
  const InstanceNorm& shape = plan.shape;
  const auto terms = static_cast<double>(shape.terms());
  // Of each plane the sums of dy and of dy (x - mean).
  auto* sums = args.workspace<double>();
  double* products = sums + shape.planes();
  std::fill(sums, sums + 2 * shape.planes(), 0.0);
  for_blocks(shape, [&](int64_t first, const ChannelShape& block) {
    float factor[kBlockPlanes], offset[kBlockPlanes], slope[kBlockPlanes];
    const int64_t begin = first * shape.size;
    plan.kernels->products(dy + begin, x + begin, mean + first, sums + first, products + first, block);
    for (int64_t p = 0; p < block.channels; ++p) {
      const int64_t plane = first + p;
      const auto inverse = static_cast<double>(rstd[plane]);
      factor[p] = gamma[plane % shape.channels] * rstd[plane];
      offset[p] = static_cast<float>(sums[plane] / terms);
      slope[p] = static_cast<float>(products[plane] * inverse * inverse / terms);
    }
    plan.kernels->backward(dy + begin, x + begin, mean + first, factor, offset, slope, dx + begin, block);
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
  add_op(device, GPUNN_OP_INSTANCE_NORM, plan_instance_norm, run_forward);
  add_op(device, GPUNN_OP_INSTANCE_NORM_BACKWARD, plan_instance_norm_backward, run_backward);
}

}  // namespace gpunn::cpu
