// UPSAMPLE2D and its backward. Packed images: a task some planes; a plane of half precision is widened first. What the
// columns are made of is the same in every row and worked out once, in the workspace.
//
// Channels-last images: a task some rows of the result, vectors of channels. A pixel of either result is a weighted sum
// of neighbours, which the plan lists, so that each is written once and one loop does both.
#include "simd/images/upsampling.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "common/upsampling.hpp"
#include "kernels.hpp"
#include "row_blocks.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// For each place along an axis of the result, the neighbours that it is made of.
class AxisNeighbours {
 public:
  explicit AxisNeighbours(const UpsampleAxis& axis, bool backward) {
    const int64_t places = backward ? axis.inputs : axis.outputs();
    std::vector<std::size_t> starts;
    for (int64_t i = 0; i < places; ++i) {
      starts.push_back(weights_.size());
      backward ? add_outputs(axis, i) : add_taps(axis.taps(i));
    }
    for (std::size_t i = 0; i < starts.size(); ++i) of_[i].weights = weights_.data() + starts[i];
  }
  // The pointers are into its own weights.
  AxisNeighbours(const AxisNeighbours&) = delete;
  AxisNeighbours& operator=(const AxisNeighbours&) = delete;

  const Neighbours* data() const { return of_.data(); }
  int64_t size() const { return std::ssize(of_); }

 private:
  void add_taps(const Taps& taps) {
    of_.push_back({taps.first, taps.second == 0.0F ? 1 : 2, nullptr});
    weights_.push_back(1.0F - taps.second);
    if (taps.second != 0.0F) weights_.push_back(taps.second);
  }
  // Of input i; a share of 0 must not make NaN of an infinity.
  void add_outputs(const UpsampleAxis& axis, int64_t i) {
    Neighbours among{axis.outputs_of(i).begin, 0, nullptr};
    for (int64_t output = among.first; output < axis.outputs_of(i).end; ++output) {
      const float share = axis.share(i, output);
      if (share == 0.0F) {
        if (among.count > 0) break;
        among.first = output + 1;
        continue;
      }
      ++among.count;
      weights_.push_back(share);
    }
    of_.push_back(among);
  }

  std::vector<Neighbours> of_;
  std::vector<float> weights_;
};

struct UpsamplePlan {
  Upsample up;
  RowBlocks planes{};
  // Of channels-last images.
  std::shared_ptr<const AxisNeighbours> rows{}, columns{};
  const UpsamplingKernels* kernels = nullptr;
  uint64_t workspace_bytes = planes.workspace_bytes();
};

UpsamplePlan make_plan(const Upsample& up, bool backward, int32_t dtype, int threads) {
  if (up.channels_last) {
    require(dtype != GPUNN_F16, "this kernel is for f32 and bf16 tensors");
    return {.up = up,
            .rows = std::make_shared<AxisNeighbours>(up.rows, backward),
            .columns = std::make_shared<AxisNeighbours>(up.columns, backward),
            .kernels = &GPUNN_SELECT_ISA(upsampling_kernels)};
  }
  return {.up = up,
          .planes = {.rows = up.planes(),
                     .size = up.output_size(),
                     .strip = dtype == GPUNN_F32 ? 0 : up.input_size() + up.output_size(),
                     .threads = threads,
                     .strips_from = static_cast<uint64_t>(up.columns.outputs()) * sizeof(Taps)}};
}

UpsamplePlan plan_upsampling(const OpDesc& desc, int threads) {
  return make_plan(upsample_of(desc), false, desc.input(0).dtype, threads);
}

UpsamplePlan plan_upsampling_backward(const OpDesc& desc, int threads) {
  return make_plan(upsample_backward_of(desc), true, desc.input(0).dtype, threads);
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
  if (up.planes() == 0) return {};
  auto* taps = args.workspace<Taps>();
  for (int64_t i = 0; i < up.columns.outputs(); ++i) taps[i] = up.columns.taps(i);
  return {taps, static_cast<std::size_t>(up.columns.outputs())};
}

// `rows` and `columns` are those of x.
template <class T>
void run_channels_last(const UpsamplePlan& plan, int64_t rows, int64_t columns, const OpArgs& args) {
  const int64_t results = plan.rows->size(), channels = plan.up.channels;
  const int64_t row = columns * channels, result = plan.columns->size() * channels;
  const auto* x = args.in<T>(0);
  auto* y = args.out<T>(0);
  parallel_ranges(plan.up.images * results, rows_per_task(result), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      plan.kernels->row<T>()(x + i / results * rows * row, row, plan.rows->data()[i % results], plan.columns->data(),
                             plan.columns->size(), channels, y + i * result);
    }
  });
}

template <class T>
void run_upsampling(const UpsamplePlan& plan, const OpArgs& args) {
  const Upsample& up = plan.up;
  if constexpr (!std::is_same_v<T, Half>) {
    if (up.channels_last) return run_channels_last<T>(plan, up.rows.inputs, up.columns.inputs, args);
  }
  const Columns columns = columns_of(up, args);
  plan.planes.for_each_wide<T>(args, up.input_size(), up.output_size(),
                               [&](const float* x, float* y) { enlarge_plane(up, columns, x, y); });
}

template <class T>
void run_upsampling_backward(const UpsamplePlan& plan, const OpArgs& args) {
  const Upsample& up = plan.up;
  if constexpr (!std::is_same_v<T, Half>) {
    if (up.channels_last) return run_channels_last<T>(plan, up.rows.outputs(), up.columns.outputs(), args);
  }
  const Columns columns = columns_of(up, args);
  plan.planes.for_each_wide<T>(args, up.output_size(), up.input_size(),
                               [&](const float* dy, float* dx) { shrink_plane(up, columns, dy, dx); });
}

}  // namespace

void add_upsampling_kernels(plugin::Device& device) {
  add_floating_op(
      device, GPUNN_OP_UPSAMPLE2D, plan_upsampling, [](auto x) { return run_upsampling<decltype(x)>; },
      Layouts::channels_last_too);
  add_floating_op(
      device, GPUNN_OP_UPSAMPLE2D_BACKWARD, plan_upsampling_backward,
      [](auto x) { return run_upsampling_backward<decltype(x)>; }, Layouts::channels_last_too);
}

}  // namespace gpunn::cpu
