// LAYER_NORM and its backward: dx by rows, dgamma and dbeta by columns. Rows of half precision are widened strip by
// strip.
#include "simd/layer_norm.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "add_op.hpp"
#include "common/normalization.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

// Columns of a task: their sums stay in the nearest cache, and a row's share of them is whole cache lines.
constexpr int64_t kColumns = 128;

// Elements of half precision that are widened at once: they stay in the first-level cache, where a row is that short.
constexpr int64_t kNormStrip = 2048;

// Rows of a strip of kColumns columns.
constexpr int64_t kColumnRows = kNormStrip / kColumns;

struct LayerNormPlan {
  LayerNorm shape{};
  const LayerNormKernels* kernels = nullptr;
  int threads = 1;
  int64_t strip_rows = 1;
  int64_t thread_floats = 0;
  uint64_t workspace_bytes = 0;
};

// `tensors` of rows are widened at once.
LayerNormPlan make_plan(const LayerNorm& shape, int32_t dtype, int64_t tensors, int threads) {
  LayerNormPlan plan{.shape = shape,
                     .kernels = &GPUNN_SELECT_ISA(layer_norm_kernels),
                     .threads = threads,
                     .strip_rows = rows_per_task(shape.columns, dtype == GPUNN_F32 ? kGrain : kNormStrip)};
  if (dtype != GPUNN_F32) {
    plan.thread_floats = tensors * plan.strip_rows * shape.columns;
    plan.workspace_bytes = static_cast<uint64_t>(threads * plan.thread_floats) * sizeof(float);
  }
  return plan;
}

// Calls body(first row, rows, the thread's workspace) for each strip.
template <class Body>
void for_strips(const LayerNormPlan& plan, const OpArgs& args, const Body& body) {
  const int64_t at_once = rows_per_task(plan.shape.columns);
  parallel_for(plan.threads, divide_up(plan.shape.rows, at_once), [&](int64_t task, int thread) {
    const int64_t end = std::min(plan.shape.rows, (task + 1) * at_once);
    float* strip = args.workspace<float>() + thread * plan.thread_floats;
    for (int64_t row = task * at_once; row < end; row += plan.strip_rows) {
      body(row, std::min(plan.strip_rows, end - row), strip);
    }
  });
}

template <class T>
void run_layer_norm(const LayerNormPlan& plan, const OpArgs& args) {
  const int64_t columns = plan.shape.columns;
  for_strips(plan, args, [&](int64_t row, int64_t rows, float* strip) {
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
  for_strips(plan, args, [&](int64_t row, int64_t rows, float* strip) {
    const int64_t n = rows * columns;
    const float* dy = as_wide(args.in<T>(0) + row * columns, n, strip);
    const float* x = as_wide(args.in<T>(1) + row * columns, n, strip + plan.thread_floats / 2);
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
  const int threads = thread_count();
  serve(
      device, GPUNN_OP_LAYER_NORM,
      [threads](const OpDesc& desc) { return make_plan(layer_norm_of(desc), desc.input(0).dtype, 1, threads); },
      each_floating([](auto x) { return run_layer_norm<decltype(x)>; }), Dtypes::floating);
  serve(
      device, GPUNN_OP_LAYER_NORM_BACKWARD,
      [threads](const OpDesc& desc) {
        return make_plan(layer_norm_backward_of(desc), desc.input(0).dtype, 2, threads);
      },
      each_floating([](auto x) { return run_layer_norm_backward<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cpu
