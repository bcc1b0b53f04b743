// LAYER_NORM and its backward: dx by rows, dgamma and dbeta by columns.
#include "simd/layer_norm.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>

#include "add_op.hpp"
#include "common/normalization.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

// Columns of a task: their sums stay in the nearest cache, and a row's share of them is whole cache lines.
constexpr int64_t kColumns = 128;

struct LayerNormPlan {
  LayerNorm shape{};
  const LayerNormKernels* kernels = nullptr;
};

LayerNormPlan make_plan(const LayerNorm& shape) {
  return {.shape = shape, .kernels = &GPUNN_SELECT_ISA(layer_norm_kernels)};
}

LayerNormPlan plan_layer_norm(const OpDesc& desc) { return make_plan(layer_norm_of(desc)); }
LayerNormPlan plan_layer_norm_backward(const OpDesc& desc) { return make_plan(layer_norm_backward_of(desc)); }

template <class Body>
void for_rows(const LayerNorm& shape, const Body& body) {
  parallel_ranges(shape.rows, rows_per_task(shape.columns), body);
}

void run_forward(const LayerNormPlan& plan, const OpArgs& args) {
  const int64_t columns = plan.shape.columns;
  for_rows(plan.shape, [&](int64_t begin, int64_t end) {
    plan.kernels->forward(args.in<float>(0) + begin * columns, args.in<float>(1), args.in<float>(2), plan.shape.epsilon,
                          args.out<float>(0) + begin * columns, args.out<float>(1) + begin, args.out<float>(2) + begin,
                          end - begin, columns);
  });
}

void run_backward(const LayerNormPlan& plan, const OpArgs& args) {
  const auto *dy = args.in<float>(0), *x = args.in<float>(1), *mean = args.in<float>(3), *rstd = args.in<float>(4);
  auto *dgamma = args.out<float>(1), *dbeta = args.out<float>(2);
  const int64_t columns = plan.shape.columns;
  for_rows(plan.shape, [&](int64_t begin, int64_t end) {
    plan.kernels->backward(dy + begin * columns, x + begin * columns, args.in<float>(2), mean + begin, rstd + begin,
                           args.out<float>(0) + begin * columns, end - begin, columns);
  });
  parallel_ranges(columns, kColumns, [&](int64_t begin, int64_t end) {
    double products[kColumns], sums[kColumns];
    plan.kernels->columns(dy + begin, x + begin, mean, rstd, products, sums, plan.shape.rows, columns, end - begin);
    std::transform(products, products + (end - begin), dgamma + begin, [](double v) { return static_cast<float>(v); });
    std::transform(sums, sums + (end - begin), dbeta + begin, [](double v) { return static_cast<float>(v); });
  });
}

}  // namespace

void add_layer_norm_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_LAYER_NORM, plan_layer_norm, run_forward);
  add_op(device, GPUNN_OP_LAYER_NORM_BACKWARD, plan_layer_norm_backward, run_backward);
}

}  // namespace gpunn::cpu
