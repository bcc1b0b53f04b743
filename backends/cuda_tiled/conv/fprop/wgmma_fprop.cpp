#include "conv/fprop/wgmma_fprop.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled::tensor {
namespace {

// Of a tensor: the kernels count pixels and elements in an int, to the end of the last tile.
constexpr int64_t kMostElements = (int64_t{1} << 31) - (1 << 16);

using backends::ConvolutionAxis;
using backends::ConvolutionShape;

struct Tap {
  int index;
  int offset;  // in virtual rows
};

// One axis of one phase.
struct PhaseAxis {
  int outputs = 0;
  int first = 0;
  int before = 0;  // virtual row 0 is input row -before
  int extent = 0;  // virtual rows
  std::vector<Tap> taps = {};
};

// The stride of the outputs in virtual rows, and the step of virtual rows in input rows.
struct AxisSteps {
  int stride;
  int step;
};

// A single tap needs no rows between the strides; columns between them come with the vectors that hold the others.
AxisSteps forward_steps(const ConvolutionAxis& axis, bool columns) {
  const int stride = static_cast<int>(axis.stride);
  const bool vectors = columns && axis.inputs % 4 == 0;
  return axis.taps == 1 && !vectors ? AxisSteps{1, stride} : AxisSteps{stride, 1};
}

PhaseAxis forward_axis(const ConvolutionAxis& axis, bool columns) {
  PhaseAxis made{.outputs = static_cast<int>(axis.outputs), .first = 0, .before = static_cast<int>(axis.pad)};
  for (int t = 0; t < axis.taps; ++t) made.taps.push_back({t, t * static_cast<int>(axis.dilation)});
  made.extent = (made.outputs - 1) * forward_steps(axis, columns).stride + made.taps.back().offset + 1;
  return made;
}

// dx[first + stride * i] takes dy[i + (first + pad - t * dilation) / stride] where that divides.
PhaseAxis gradient_axis(const ConvolutionAxis& axis, int first) {
  const int stride = static_cast<int>(axis.stride);
  PhaseAxis made{
      .outputs = cuda::divide_up(static_cast<int>(axis.inputs) - first, stride), .first = first, .before = 0};
  int lowest = 0;
  for (int t = 0; t < axis.taps; ++t) {
    const int place = first + static_cast<int>(axis.pad) - t * static_cast<int>(axis.dilation);
    if (place % stride != 0) continue;
    lowest = made.taps.empty() ? place / stride : std::min(lowest, place / stride);
    made.taps.push_back({t, place / stride});
  }
  int highest = 0;
  for (Tap& tap : made.taps) {
    tap.offset -= lowest;
    highest = std::max(highest, tap.offset);
  }
  made.before = -lowest;
  made.extent = made.outputs + highest;
  return made;
}

// Steps a stage of the pipeline: as many as the taps, or, of few taps, 4 with several times 8 channels.
int steps_of(int taps) {
  if (taps <= 4) return taps == 3 ? 3 : 4;
  return taps == 9 || taps == 5 || taps == 25 ? (taps == 9 ? 9 : 5) : 0;
}

// Whether whole input rows can be copied in vectors, and how they lie then.
void set_vector(const FpropPlan& plan, FpropPhase& phase) {
  const int right = phase.virtual_columns - phase.left - plan.input_columns;
  phase.column_scale = 1;
  if (plan.input_column_step != 1 || plan.input_columns % 4 != 0 || phase.left > 4 || right > 4) return;
  phase.vector = 1;
  phase.column_scale = plan.column_stride;
  phase.lead = phase.left > 0 || right > 0 ? 4 : 0;
  phase.shift = phase.lead - phase.left;
  phase.pitch = phase.lead + plan.input_columns;
}

bool serves(const ConvolutionShape& shape) {
  const auto fits = [&](int64_t channels, int64_t rows, int64_t columns) {
    return static_cast<double>(shape.batch) * static_cast<double>(channels) * static_cast<double>(rows) *
               static_cast<double>(columns) <=
           static_cast<double>(kMostElements);
  };
  return shape.groups == 1 && shape.rows.stride <= 2 && shape.columns.stride <= 2 &&
         shape.rows.taps * shape.columns.taps <= kMaxTaps &&
         fits(shape.group_inputs, shape.rows.inputs, shape.columns.inputs) &&
         fits(shape.group_outputs, shape.rows.outputs, shape.columns.outputs);
}

// A convolution of 1x1 without stride is a product of whole images, whatever their rows are.
ConvolutionShape without_rows(const ConvolutionShape& shape) {
  const auto plain = [](const ConvolutionAxis& axis) { return axis.taps == 1 && axis.stride == 1 && axis.pad == 0; };
  const int64_t pixels = shape.rows.inputs * shape.columns.inputs;
  if (!plain(shape.rows) || !plain(shape.columns) || pixels % 4 != 0) return shape;
  ConvolutionShape flat = shape;
  flat.rows.inputs = flat.rows.outputs = pixels / 4;
  flat.columns.inputs = flat.columns.outputs = 4;
  return flat;
}

std::optional<FpropPhase> make_phase(const FpropPlan& plan, const PhaseAxis& rows, const PhaseAxis& columns,
                                     const FpropTile& tile) {
  FpropPhase phase{};
  phase.rows = rows.outputs;
  phase.columns = columns.outputs;
  phase.first_row = rows.first;
  phase.first_column = columns.first;
  phase.top = rows.before;
  phase.left = columns.before;
  phase.virtual_rows = rows.extent;
  phase.virtual_columns = columns.extent;
  phase.half = cuda::divide_up(columns.extent, plan.column_stride);
  phase.pitch = phase.half * plan.column_stride;
  phase.taps = static_cast<int>(rows.taps.size() * columns.taps.size());
  for (const Tap& row : rows.taps) phase.reach = std::max(phase.reach, row.offset + 1);
  set_vector(plan, phase);
  phase.padded = phase.vector == 0 || phase.lead > 0 || phase.top > 0 ||
                 (phase.virtual_rows - 1) * plan.input_row_step - phase.top >= plan.input_rows;
  const int image_words = phase.virtual_rows * phase.pitch;
  phase.interleaved =
      phase.rows == 4 && phase.columns == 4 && (image_words % 8 == 4 || image_words % 32 == 16) && phase.pitch > 4;
  const int rows_of_patch = patch_rows(phase, plan.batch, plan.row_stride, tile.pixels);
  if (!patch_fits(plan, phase, rows_of_patch)) return std::nullopt;
  phase.units = patch_units(plan, phase, rows_of_patch);
  phase.plane = patch_words(phase, rows_of_patch);
  // So that 4 channels of 8 neighbours, or of 4 of each of two images, lie in 32 banks.
  const int bank = phase.interleaved != 0 && image_words % 32 == 16 ? 4 : 8;
  phase.plane += (bank - phase.plane % 32 + 32) % 32;
  int i = 0;
  for (const Tap& row : rows.taps) {
    for (const Tap& column : columns.taps) {
      const int stride = phase.vector != 0 ? 1 : plan.column_stride;
      const int place = column.offset % stride * phase.half + column.offset / stride;
      phase.step_offset[static_cast<std::size_t>(i++)] = row.offset * phase.pitch + place;
    }
  }
  return phase;
}

void set_taps(FpropPhase& phase, const PhaseAxis& rows, const PhaseAxis& columns, int filter_columns) {
  int i = 0;
  for (const Tap& row : rows.taps) {
    for (const Tap& column : columns.taps) {
      phase.tap[static_cast<std::size_t>(i++)] = row.index * filter_columns + column.index;
    }
  }
}

// Adds a phase. False where it has more taps than are served.
bool add_phase(FpropPlan& plan, const PhaseAxis& rows, const PhaseAxis& columns, int filter_columns,
               const FpropTile& tile) {
  if (rows.outputs <= 0 || columns.outputs <= 0) return true;
  if (rows.taps.empty() || columns.taps.empty()) {
    plan.gaps = 1;
    return true;
  }
  if (plan.phases == kMaxPhases || rows.taps.size() * columns.taps.size() > kMaxTaps) return false;
  std::optional<FpropPhase> phase = make_phase(plan, rows, columns, tile);
  if (!phase) return false;
  set_taps(*phase, rows, columns, filter_columns);
  plan.phase[static_cast<std::size_t>(plan.phases++)] = *phase;
  return true;
}

// Channels, stages and packed filters, once all phases are known.
bool finish(FpropPlan& plan, const FpropTile& tile, int shared_limit) {
  plan.steps = 0;
  for (int i = 0; i < plan.phases; ++i) {
    const int steps = steps_of(plan.phase[static_cast<std::size_t>(i)].taps);
    if (steps == 0 || (plan.steps != 0 && plan.steps != steps)) return false;
    plan.steps = steps;
  }
  if (plan.steps == 0) return false;
  const int filter_tiles = cuda::divide_up(plan.outputs, tile.filters);
  for (int i = 0; i < plan.phases; ++i) {
    FpropPhase& phase = plan.phase[static_cast<std::size_t>(i)];
    phase.packed = plan.packed;
    phase.tap_groups = cuda::divide_up(phase.taps, plan.steps);
    phase.stage_channels = 8 * (phase.tap_groups > 1 ? 1 : plan.steps / phase.taps);
    if (phase.tap_groups > 1 ? phase.taps % plan.steps != 0 : plan.steps % phase.taps != 0) return false;
    for (int step = phase.taps; step < plan.steps; ++step) {  // the same taps of the next 8 channels
      phase.step_offset[static_cast<std::size_t>(step)] =
          phase.step_offset[static_cast<std::size_t>(step - phase.taps)] + 8 * phase.plane;
    }
    phase.chunks = cuda::divide_up(plan.inputs, phase.stage_channels) * phase.tap_groups;
    plan.packed += int64_t{filter_tiles} * phase.chunks * plan.steps * tile.filters * 8;
    plan.patch = std::max(plan.patch, phase.stage_channels * phase.plane);
  }
  if (plan.packed > kMostElements) return false;
  plan.splits = 1;
  for (plan.stages = 4; plan.stages >= 2; --plan.stages) {
    if (shared_bytes(plan, tile) <= shared_limit) return true;
  }
  return false;
}

}  // namespace

bool patch_fits(const FpropPlan& plan, const FpropPhase& phase, int rows) {
  const int64_t all_rows = int64_t{plan.batch} * phase.virtual_rows;  // the kernels count them in an int
  return int64_t{rows} * phase.pitch <= kMostPatchWords && all_rows < int64_t{1} << 30;
}

int patch_units(const FpropPlan& plan, const FpropPhase& phase, int rows) {
  return rows * (phase.vector != 0 ? plan.input_columns / 4 : phase.pitch);
}

int patch_words(const FpropPhase& phase, int rows) { return rows * phase.pitch + phase.lead; }

int patch_rows(const FpropPhase& phase, int batch, int row_stride, int tile) {
  constexpr int64_t kMostTiles = 4096;  // that are looked at
  const int64_t pixels = int64_t{batch} * phase.rows * phase.columns;
  const int64_t image = int64_t{phase.rows} * phase.columns;
  const int64_t tiles = std::min(cuda::divide_up(pixels, tile), image / std::gcd(image, int64_t{tile}) + 1);
  int64_t most = 0;
  if (tiles > kMostTiles) {  // a bound: so many rows, and so many borders between images
    const int64_t rows = (tile + phase.columns - 2) / phase.columns + 1;
    const int64_t borders = cuda::divide_up(rows - 1, phase.rows);
    most = (rows - 1) * row_stride + borders * phase.virtual_rows + phase.reach;
  }
  const auto virtual_row = [&](int64_t pixel) {
    const int64_t row = pixel / phase.columns;
    return row / phase.rows * phase.virtual_rows + row % phase.rows * row_stride;
  };
  for (int64_t i = 0; i < tiles && tiles <= kMostTiles; ++i) {
    const int64_t last = std::min((i + 1) * tile, pixels) - 1;
    most = std::max(most, virtual_row(last) - virtual_row(i * tile) + phase.reach);
  }
  return static_cast<int>(std::min<int64_t>(most, kMostPatchWords));
}

int shared_bytes(const FpropPlan& plan, const FpropTile& tile) {
  int table = 0;
  for (int i = 0; i < plan.phases; ++i) table = std::max(table, 2 * plan.phase[static_cast<std::size_t>(i)].units);
  const int stage = plan.steps * 8 * tile.filters + plan.patch;
  return (plan.stages * stage + table) * 4 + 2 * plan.stages * 8;
}

std::optional<FpropPlan> fprop_geometry(const ConvolutionShape& whole, const FpropTile& tile) {
  const ConvolutionShape shape = without_rows(whole);
  if (!serves(shape)) return std::nullopt;
  FpropPlan plan{};
  plan.batch = static_cast<int>(shape.batch);
  plan.inputs = static_cast<int>(shape.group_inputs);
  plan.outputs = static_cast<int>(shape.group_outputs);
  plan.input_rows = static_cast<int>(shape.rows.inputs);
  plan.input_columns = static_cast<int>(shape.columns.inputs);
  plan.output_rows = static_cast<int>(shape.rows.outputs);
  plan.output_columns = static_cast<int>(shape.columns.outputs);
  plan.row_step = plan.column_step = 1;
  plan.row_stride = forward_steps(shape.rows, false).stride;
  plan.column_stride = forward_steps(shape.columns, true).stride;
  plan.input_row_step = forward_steps(shape.rows, false).step;
  plan.input_column_step = forward_steps(shape.columns, true).step;
  plan.filter_taps = static_cast<int>(shape.rows.taps * shape.columns.taps);
  const int filter_columns = static_cast<int>(shape.columns.taps);
  if (!add_phase(plan, forward_axis(shape.rows, false), forward_axis(shape.columns, true), filter_columns, tile))
    return std::nullopt;
  return plan;
}

std::optional<FpropPlan> plan_fprop(const ConvolutionShape& shape, const FpropTile& tile, int shared_limit) {
  std::optional<FpropPlan> plan = fprop_geometry(shape, tile);
  return plan && finish(*plan, tile, shared_limit) ? plan : std::nullopt;
}

std::optional<FpropPlan> plan_dgrad(const ConvolutionShape& whole, const FpropTile& tile, int shared_limit) {
  const ConvolutionShape shape = without_rows(whole);
  if (!serves(shape)) return std::nullopt;
  FpropPlan plan{};
  plan.backward = true;
  plan.filter_taps = static_cast<int>(shape.rows.taps * shape.columns.taps);
  plan.batch = static_cast<int>(shape.batch);
  plan.inputs = static_cast<int>(shape.group_outputs);
  plan.outputs = static_cast<int>(shape.group_inputs);
  plan.input_rows = static_cast<int>(shape.rows.outputs);
  plan.input_columns = static_cast<int>(shape.columns.outputs);
  plan.output_rows = static_cast<int>(shape.rows.inputs);
  plan.output_columns = static_cast<int>(shape.columns.inputs);
  plan.row_step = static_cast<int>(shape.rows.stride);
  plan.column_step = static_cast<int>(shape.columns.stride);
  plan.row_stride = plan.column_stride = plan.input_row_step = plan.input_column_step = 1;
  for (int row = plan.row_step - 1; row >= 0; --row) {  // the phases with most taps, those of odd rows, mostly, first
    for (int column = plan.column_step - 1; column >= 0; --column) {
      if (!add_phase(plan, gradient_axis(shape.rows, row), gradient_axis(shape.columns, column),
                     static_cast<int>(shape.columns.taps), tile)) {
        return std::nullopt;
      }
    }
  }
  return finish(plan, tile, shared_limit) ? std::optional(plan) : std::nullopt;
}

uint64_t workspace_bytes(const FpropPlan& plan) {
  const int64_t partial = plan.splits > 1 ? plan.splits * plan.output_size() : 0;
  return static_cast<uint64_t>(plan.packed + partial) * sizeof(float);
}

}  // namespace gpunn::cuda_tiled::tensor
