// LAYER_NORM and its backward: dx by rows, dgamma and dbeta by columns. Rows of half precision are widened strip by
// strip.
#include "simd/layer_norm.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/normalization.hpp"
#include "kernels.hpp"
#include "row_blocks.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// Columns of a task: their sums stay in the nearest cache, and a row's share of them is whole cache lines.
constexpr int64_t kColumns = 128;

// Elements of half precision that are widened at once: they stay in the first-level cache, where a row is that short.
constexpr int64_t kLayerNormStrip = 2048;

// Rows of a strip of kColumns columns.
constexpr int64_t kColumnRows = kLayerNormStrip / kColumns;

struct LayerNormPlan {
  LayerNorm shape{};
  const LayerNormKernels* kernels = nullptr;
  RowBlocks blocks{};
  uint64_t workspace_bytes = blocks.workspace_bytes();
};

// `tensors` of rows are widened at once.
LayerNormPlan make_plan(const LayerNorm& shape, int32_t dtype, int64_t tensors, int threads) {
  const bool half = dtype != GPUNN_F32;
  const int64_t block = rows_per_task(shape.columns, half ? kLayerNormStrip : kGrain);
  return {.shape = shape,
          .kernels = &GPUNN_SELECT_ISA(layer_norm_kernels),
          .blocks = {.rows = shape.rows,
                     .size = shape.columns,
                     .block = block,
                     .strip = half ? tensors * block * shape.columns : 0,
                     .threads = threads}};
}

LayerNormPlan plan_layer_norm(const OpDesc& desc, int threads) {
  return make_plan(layer_norm_of(desc), desc.input(0).dtype, 1, threads);
}

LayerNormPlan plan_layer_norm_backward(const OpDesc& desc, int threads) {
  return make_plan(layer_norm_backward_of(desc), desc.input(0).dtype, 2, threads);
}

template <class T>
void run_layer_norm(const LayerNormPlan& plan, const OpArgs& args) {
  const int64_t columns = plan.shape.columns;
  plan.blocks.for_each(args, [&](int64_t row, int64_t rows, float* strip) {
    const float* x = as_wide(args.in<T>(0) + row * columns, rows * columns, strip);
    T* y = args.out<T>(0) + row * columns;
    plan.kernels->forward(x, args.in<float>(1), args.in<float>(2), plan.shape.epsilon, wide_target(y, strip),
                          args.out<float>(1) + row, args.out<float>(2) + row, rows, columns);
    put_narrow(strip, y, rows * columns);
  });
}

// dgamma and dbeta of the columns from `begin` on.
template <class T>
void sum_columns(const LayerNormPlan& plan, const OpArgs& args, int64_t begin, int64_t width) {
  const auto *dy = args.in<T>(0) + begin, *x = args.in<T>(1) + begin;
  const auto *mean = args.in<float>(3), *rstd = args.in<float>(4);
  auto *dgamma = args.out<float>(1) + begin, *dbeta = args.out<float>(2) + begin;
  const int64_t columns = plan.shape.columns;
  double products[kColumns] = {}, sums[kColumns] = {};
  if constexpr (std::is_same_v<T, float>) {
    plan.kernels->columns(dy, x, mean, rstd, products, sums, plan.shape.rows, columns, width);
  } else {
    float wide_dy[kColumnRows * kColumns], wide_x[kColumnRows * kColumns];
    for (int64_t row = 0; row < plan.shape.rows; row += kColumnRows) {
      const int64_t rows = std::min(kColumnRows, plan.shape.rows - row);
      for (int64_t i = 0; i < rows; ++i) {
        widen(dy + (row + i) * columns, 1, wide_dy + i * width, width);
        widen(x + (row + i) * columns, 1, wide_x + i * width, width);
      }
      plan.kernels->columns(wide_dy, wide_x, mean + row, rstd + row, products, sums, rows, width, width);
    }
  }
  std::transform(products, products + width, dgamma, [](double v) { return static_cast<float>(v); });
  std::transform(sums, sums + width, dbeta, [](double v) { return static_cast<float>(v); });
}

template <class T>
void run_layer_norm_backward(const LayerNormPlan& plan, const OpArgs& args) {
  const int64_t columns = plan.shape.columns;
  plan.blocks.for_each(args, [&](int64_t row, int64_t rows, float* strip) {
    const int64_t n = rows * columns;
    const float* dy = as_wide(args.in<T>(0) + row * columns, n, strip);
    const float* x = as_wide(args.in<T>(1) + row * columns, n, strip + plan.blocks.strip / 2);
    T* dx = args.out<T>(0) + row * columns;
    plan.kernels->backward(dy, x, args.in<float>(2), args.in<float>(3) + row, args.in<float>(4) + row,
                           wide_target(dx, strip), rows, columns);
    put_narrow(strip, dx, n);
  });
  parallel_ranges(columns, kColumns,
                  [&](int64_t begin, int64_t end) { sum_columns<T>(plan, args, begin, end - begin); });
}

}  // namespace

void add_layer_norm_kernels(plugin::Device& device) {
  add_floating_op(device, GPUNN_OP_LAYER_NORM, plan_layer_norm, [](auto x) { return run_layer_norm<decltype(x)>; });
  add_floating_op(device, GPUNN_OP_LAYER_NORM_BACKWARD, plan_layer_norm_backward,
                  [](auto x) { return run_layer_norm_backward<decltype(x)>; });
}

}  // namespace gpunn::cpu
