// REFLECT_PAD2D and its backward, a task some planes. Sums of a gradient of half precision are f32.
#include "common/reflect_pad.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>

#include "add_op.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

struct ReflectPadPlan {
  ReflectPad pad;
  int threads = 1;
  int64_t thread_floats = 0;  // of the backward in half precision: a plane of dx and of dy
  uint64_t workspace_bytes = 0;
};

ReflectPadPlan plan_reflect_pad_backward(const OpDesc& desc, int threads) {
  ReflectPadPlan plan{.pad = reflect_pad_backward_of(desc), .threads = threads};
  if (desc.input(0).dtype != GPUNN_F32) plan.thread_floats = plan.pad.input_size() + plan.pad.output_size();
  plan.workspace_bytes = static_cast<uint64_t>(threads * plan.thread_floats) * sizeof(float);
  return plan;
}

template <class T>
void pad_plane(const ReflectPad& pad, const T* x, T* y) {
  const ReflectAxis& columns = pad.columns;
  for (int64_t p = 0; p < pad.rows.outputs(); ++p, y += columns.outputs()) {
    const T* const row = x + pad.rows.source(p) * columns.inputs;
    for (int64_t q = 0; q < columns.before; ++q) y[q] = row[columns.source(q)];
    std::copy(row, row + columns.inputs, y + columns.before);
    for (int64_t q = columns.before + columns.inputs; q < columns.outputs(); ++q) y[q] = row[columns.source(q)];
  }
}

// Each element of dy is added to the one that it is the gradient of.
void gather_plane(const ReflectPad& pad, const float* dy, float* dx) {
  const ReflectAxis& columns = pad.columns;
  std::fill(dx, dx + pad.input_size(), 0.0F);
  for (int64_t p = 0; p < pad.rows.outputs(); ++p, dy += columns.outputs()) {
    float* const row = dx + pad.rows.source(p) * columns.inputs;
    for (int64_t q = 0; q < columns.before; ++q) row[columns.source(q)] += dy[q];
    for (int64_t q = 0; q < columns.inputs; ++q) row[q] += dy[columns.before + q];
    for (int64_t q = columns.before + columns.inputs; q < columns.outputs(); ++q) row[columns.source(q)] += dy[q];
  }
}

template <class T>
void run_reflect_pad(const ReflectPadPlan& plan, const OpArgs& args) {
  const ReflectPad& pad = plan.pad;
  const auto* x = args.in<T>(0);
  auto* y = args.out<T>(0);
  parallel_ranges(pad.planes(), rows_per_task(pad.output_size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) pad_plane(pad, x + i * pad.input_size(), y + i * pad.output_size());
  });
}

template <class T>
void run_reflect_pad_backward(const ReflectPadPlan& plan, const OpArgs& args) {
  const ReflectPad& pad = plan.pad;
  const int64_t at_once = rows_per_task(pad.output_size());
  parallel_for(plan.threads, divide_up(pad.planes(), at_once), [&](int64_t task, int thread) {
    float* const wide_dx = args.workspace<float>() + thread * plan.thread_floats;
    float* const wide_dy = wide_dx + (plan.thread_floats > 0 ? pad.input_size() : 0);
    for (int64_t i = task * at_once; i < std::min(pad.planes(), (task + 1) * at_once); ++i) {
      T* const dx = args.out<T>(0) + i * pad.input_size();
      gather_plane(pad, as_wide(args.in<T>(0) + i * pad.output_size(), pad.output_size(), wide_dy),
                   wide_target(dx, wide_dx));
      put_narrow(wide_dx, dx, pad.input_size());
    }
  });
}

}  // namespace

void add_reflect_pad_kernels(plugin::Device& device) {
  serve(
      device, GPUNN_OP_REFLECT_PAD2D, [](const OpDesc& desc) { return ReflectPadPlan{.pad = reflect_pad_of(desc)}; },
      each_floating([](auto x) { return run_reflect_pad<decltype(x)>; }), Dtypes::floating);
  serve(
      device, GPUNN_OP_REFLECT_PAD2D_BACKWARD,
      [threads = thread_count()](const OpDesc& desc) { return plan_reflect_pad_backward(desc, threads); },
      each_floating([](auto x) { return run_reflect_pad_backward<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cpu
