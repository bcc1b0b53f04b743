// REFLECT_PAD2D and its backward, a task some planes. Sums of a gradient of half precision are f32.
#include "common/reflect_pad.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>

#include "kernels.hpp"
#include "row_blocks.hpp"

namespace gpunn::cpu {
namespace {

struct ReflectPadPlan {
  ReflectPad pad;
  RowBlocks planes{};
  uint64_t workspace_bytes = planes.workspace_bytes();
};

ReflectPadPlan plan_reflect_pad(const OpDesc& desc, int threads) {
  const ReflectPad pad = reflect_pad_of(desc);
  return {.pad = pad, .planes = {.rows = pad.planes(), .size = pad.output_size(), .threads = threads}};
}

ReflectPadPlan plan_reflect_pad_backward(const OpDesc& desc, int threads) {
  const ReflectPad pad = reflect_pad_backward_of(desc);
  return {.pad = pad,
          .planes = {.rows = pad.planes(),
                     .size = pad.output_size(),
                     .strip = desc.input(0).dtype == GPUNN_F32 ? 0 : pad.input_size() + pad.output_size(),
                     .threads = threads}};
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
  plan.planes.for_each(args, [&](int64_t plane, int64_t /*planes*/, float* /*strip*/) {
    pad_plane(pad, x + plane * pad.input_size(), y + plane * pad.output_size());
  });
}

template <class T>
void run_reflect_pad_backward(const ReflectPadPlan& plan, const OpArgs& args) {
  const ReflectPad& pad = plan.pad;
  plan.planes.for_each_wide<T>(args, pad.output_size(), pad.input_size(),
                               [&](const float* dy, float* dx) { gather_plane(pad, dy, dx); });
}

}  // namespace

void add_reflect_pad_kernels(plugin::Device& device) {
  add_floating_op(device, GPUNN_OP_REFLECT_PAD2D, plan_reflect_pad,
                  [](auto x) { return run_reflect_pad<decltype(x)>; });
  add_floating_op(device, GPUNN_OP_REFLECT_PAD2D_BACKWARD, plan_reflect_pad_backward,
                  [](auto x) { return run_reflect_pad_backward<decltype(x)>; });
}

}  // namespace gpunn::cpu
