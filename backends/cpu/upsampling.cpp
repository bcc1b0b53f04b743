// UPSAMPLE2D and its backward, a task some planes; a plane of half precision is widened first. What the columns are
// made of is the same in every row and worked out once, in the workspace.
#include "common/upsampling.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels.hpp"
#include "row_blocks.hpp"

namespace gpunn::cpu {
namespace {

struct UpsamplePlan {
  Upsample up;
  RowBlocks planes{};
  uint64_t workspace_bytes = planes.workspace_bytes();
};

UpsamplePlan make_plan(const Upsample& up, int32_t dtype, int threads) {
  return {.up = up,
          .planes = {.rows = up.planes,
                     .size = up.output_size(),
                     .strip = dtype == GPUNN_F32 ? 0 : up.input_size() + up.output_size(),
                     .threads = threads,
                     .strips_from = static_cast<uint64_t>(up.columns.outputs()) * sizeof(Taps)}};
}

UpsamplePlan plan_upsampling(const OpDesc& desc, int threads) {
  return make_plan(upsample_of(desc), desc.input(0).dtype, threads);
}

UpsamplePlan plan_upsampling_backward(const OpDesc& desc, int threads) {
  return make_plan(upsample_backward_of(desc), desc.input(0).dtype, threads);
}

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

Columns columns_of(const Upsample& up, const OpArgs& args) {
  if (up.planes == 0) return {};
  auto* taps = args.workspace<Taps>();
  for (int64_t i = 0; i < up.columns.outputs(); ++i) taps[i] = up.columns.taps(i);
  return {taps, static_cast<std::size_t>(up.columns.outputs())};
}

template <class T>
void run_upsampling(const UpsamplePlan& plan, const OpArgs& args) {
  const Upsample& up = plan.up;
  const Columns columns = columns_of(up, args);
  plan.planes.for_each_wide<T>(args, up.input_size(), up.output_size(),
                               [&](const float* x, float* y) { enlarge_plane(up, columns, x, y); });
}

template <class T>
void run_upsampling_backward(const UpsamplePlan& plan, const OpArgs& args) {
  const Upsample& up = plan.up;
  const Columns columns = columns_of(up, args);
  plan.planes.for_each_wide<T>(args, up.output_size(), up.input_size(),
                               [&](const float* dy, float* dx) { shrink_plane(up, columns, dy, dx); });
}

}  // namespace

void add_upsampling_kernels(plugin::Device& device) {
  add_floating_op(device, GPUNN_OP_UPSAMPLE2D, plan_upsampling, [](auto x) { return run_upsampling<decltype(x)>; });
  add_floating_op(device, GPUNN_OP_UPSAMPLE2D_BACKWARD, plan_upsampling_backward,
                  [](auto x) { return run_upsampling_backward<decltype(x)>; });
}

}  // namespace gpunn::cpu
