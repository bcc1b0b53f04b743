// UPSAMPLE2D and its backward, a task some planes; a plane of half precision is widened first. What the columns are
// made of is the same in every row and worked out once, in the workspace.
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
  int threads = 1;
  int64_t thread_floats = 0;  // a plane of either size, of half precision
  uint64_t workspace_bytes = 0;
};

UpsamplePlan make_plan(const Upsample& up, int32_t dtype, int threads) {
  UpsamplePlan plan{.up = up, .threads = threads};
  if (dtype != GPUNN_F32) plan.thread_floats = up.input_size() + up.output_size();
  plan.workspace_bytes = static_cast<uint64_t>(up.columns.outputs()) * sizeof(Taps) +
                         static_cast<uint64_t>(threads * plan.thread_floats) * sizeof(float);
  return plan;
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

// Calls plane(columns, x, y) in f32 for each plane of the input and of the output, of those sizes.
template <class T, class Plane>
void for_each_plane(const UpsamplePlan& plan, const OpArgs& args, int64_t x_size, int64_t y_size, const Plane& plane) {
  const Upsample& up = plan.up;
  if (up.planes == 0) return;
  auto* taps = args.workspace<Taps>();
  for (int64_t i = 0; i < up.columns.outputs(); ++i) taps[i] = up.columns.taps(i);
  const Columns columns(taps, static_cast<std::size_t>(up.columns.outputs()));
  auto* const strips = reinterpret_cast<float*>(taps + up.columns.outputs());
  const int64_t at_once = rows_per_task(up.output_size());
  parallel_for(plan.threads, divide_up(up.planes, at_once), [&](int64_t task, int thread) {
    float* const wide_x = strips + thread * plan.thread_floats;
    float* const wide_y = wide_x + (plan.thread_floats > 0 ? x_size : 0);
    for (int64_t i = task * at_once; i < std::min(up.planes, (task + 1) * at_once); ++i) {
      T* const y = args.out<T>(0) + i * y_size;
      plane(columns, as_wide(args.in<T>(0) + i * x_size, x_size, wide_x), wide_target(y, wide_y));
      put_narrow(wide_y, y, y_size);
    }
  });
}

template <class T>
void run_upsampling(const UpsamplePlan& plan, const OpArgs& args) {
  for_each_plane<T>(plan, args, plan.up.input_size(), plan.up.output_size(),
                    [&](Columns columns, const float* x, float* y) { enlarge_plane(plan.up, columns, x, y); });
}

template <class T>
void run_upsampling_backward(const UpsamplePlan& plan, const OpArgs& args) {
  for_each_plane<T>(plan, args, plan.up.output_size(), plan.up.input_size(),
                    [&](Columns columns, const float* dy, float* dx) { shrink_plane(plan.up, columns, dy, dx); });
}

}  // namespace

void add_upsampling_kernels(plugin::Device& device) {
  const auto add = [&device, threads = thread_count()](int32_t op, Upsample (*shape_of)(const OpDesc&), auto run) {
    serve(
        device, op,
        [shape_of, threads](const OpDesc& desc) { return make_plan(shape_of(desc), desc.input(0).dtype, threads); },
        each_floating(run), Dtypes::floating);
  };
  add(GPUNN_OP_UPSAMPLE2D, upsample_of, [](auto x) { return run_upsampling<decltype(x)>; });
  add(GPUNN_OP_UPSAMPLE2D_BACKWARD, upsample_backward_of, [](auto x) { return run_upsampling_backward<decltype(x)>; });
}

}  // namespace gpunn::cpu
