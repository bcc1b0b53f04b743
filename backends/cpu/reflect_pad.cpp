// REFLECT_PAD2D and its backward, a task some planes.
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

void pad_plane(const ReflectPad& pad, const float* x, float* y) {
  const ReflectAxis& columns = pad.columns;
  for (int64_t p = 0; p < pad.rows.outputs(); ++p, y += columns.outputs()) {
    const float* const row = x + pad.rows.source(p) * columns.inputs;
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

void run_forward(const ReflectPad& pad, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  parallel_ranges(pad.planes(), rows_per_task(pad.output_size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) pad_plane(pad, x + i * pad.input_size(), y + i * pad.output_size());
  });
}

void run_backward(const ReflectPad& pad, const OpArgs& args) {
  const auto* dy = args.in<float>(0);
  auto* dx = args.out<float>(0);
  parallel_ranges(pad.planes(), rows_per_task(pad.output_size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) gather_plane(pad, dy + i * pad.output_size(), dx + i * pad.input_size());
  });
}

}  // namespace

void add_reflect_pad_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_REFLECT_PAD2D, reflect_pad_of, run_forward);
  add_op(device, GPUNN_OP_REFLECT_PAD2D_BACKWARD, reflect_pad_backward_of, run_backward);
}

}  // namespace gpunn::cpu
