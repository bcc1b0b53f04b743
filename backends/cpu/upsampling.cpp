// UPSAMPLE2D and its backward, a task some planes. What the columns are made of is the same in every row and worked out
// once, in the workspace.
#include "common/upsampling.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

#include "add_op.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

struct UpsamplePlan {
  Upsample up;
  uint64_t workspace_bytes = 0;
};

UpsamplePlan make_plan(const Upsample& up) {
  return {.up = up, .workspace_bytes = static_cast<uint64_t>(up.columns.outputs()) * sizeof(Taps)};
}

UpsamplePlan plan_upsampling(const OpDesc& desc) { return make_plan(upsample_of(desc)); }
UpsamplePlan plan_upsampling_backward(const OpDesc& desc) { return make_plan(upsample_backward_of(desc)); }

// Of each column of the larger image.
using Columns = std::span<const Taps>;

float along(const float* row, const Taps& taps) {
  const float first = row[taps.first];
  return taps.second == 0.0F ? first : (1.0F - taps.second) * first + taps.second * row[taps.first + 1];
}

void enlarge_plane(const Upsample& up, Columns columns, const float* x, float* y) {
  for (int64_t p = 0; p < up.rows.outputs(); ++p) {
    const Taps row = up.rows.taps(p);
    const float* above = x + row.first * up.columns.inputs;
    const float* below = above + up.columns.inputs;
    for (const Taps& column : columns) {
      const float first = along(above, column);
      *y++ = row.second == 0.0F ? first : (1.0F - row.second) * first + row.second * along(below, column);
    }
  }
}

// Each element of y gives each of its (at most four) elements of x what it took from it.
void shrink_plane(const Upsample& up, Columns columns, const float* dy, float* dx) {
  std::fill(dx, dx + up.input_size(), 0.0F);
  const auto give = [](float* row, const Taps& taps, float gradient) {
    row[taps.first] += (1.0F - taps.second) * gradient;
    if (taps.second != 0.0F) row[taps.first + 1] += taps.second * gradient;
  };
  for (int64_t p = 0; p < up.rows.outputs(); ++p) {
    const Taps row = up.rows.taps(p);
    float* above = dx + row.first * up.columns.inputs;
    for (const Taps& column : columns) {
      const float gradient = *dy++;
      give(above, column, (1.0F - row.second) * gradient);
      if (row.second != 0.0F) give(above + up.columns.inputs, column, row.second * gradient);
    }
  }
}

// Calls plane(columns, offset of the plane in the smaller image, in the larger).
template <class Plane>
void for_each_plane(const UpsamplePlan& plan, const OpArgs& args, const Plane& plane) {
  const Upsample& up = plan.up;
  if (up.planes == 0) return;
  auto* taps = args.workspace<Taps>();
  for (int64_t i = 0; i < up.columns.outputs(); ++i) taps[i] = up.columns.taps(i);
  const Columns columns(taps, static_cast<std::size_t>(up.columns.outputs()));
  parallel_ranges(up.planes, rows_per_task(up.output_size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) plane(columns, i * up.input_size(), i * up.output_size());
  });
}

void run_forward(const UpsamplePlan& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  for_each_plane(plan, args, [&](Columns columns, int64_t small, int64_t large) {
    enlarge_plane(plan.up, columns, x + small, y + large);
  });
}

void run_backward(const UpsamplePlan& plan, const OpArgs& args) {
  const auto* dy = args.in<float>(0);
  auto* dx = args.out<float>(0);
  for_each_plane(plan, args, [&](Columns columns, int64_t small, int64_t large) {
    shrink_plane(plan.up, columns, dy + large, dx + small);
  });
}

}  // namespace

void add_upsampling_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_UPSAMPLE2D, plan_upsampling, run_forward);
  add_op(device, GPUNN_OP_UPSAMPLE2D_BACKWARD, plan_upsampling_backward, run_backward);
}

}  // namespace gpunn::cpu
