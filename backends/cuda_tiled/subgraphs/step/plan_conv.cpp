#include "subgraphs/step/plan_conv.hpp"

#include <algorithm>
#include <limits>

#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/layout.hpp"

namespace gpunn::cuda_tiled {
namespace {

// How often the fullest bank is asked when a warp's threads are (strip, row) pairs, strips first.
int bank_conflicts(int pitch, int tile, int strips, int rows) {
  int asked[32] = {};
  int most = 0;
  for (int lane = 0; lane < 32 && lane < strips * rows; ++lane) {
    most = std::max(most, ++asked[(lane / strips * pitch + lane % strips * tile) % 32]);
  }
  return most;
}

// An even number where the gradient of the filters reads 8 bytes at a time; an odd one where its lanes read rows.
int best_pitch(int least, int tile, int strips, int rows, bool odd = false) {
  int best = odd ? least | 1 : up(least, 2);
  for (int pitch = best; pitch < least + 12; pitch += 2) {
    if (bank_conflicts(pitch, tile, strips, rows) < bank_conflicts(best, tile, strips, rows)) best = pitch;
  }
  return best;
}

// Time of a pass whose threads take `units` steps each, in cycles. Its warps are dealt to four schedulers; a step has
// `instructions` and, for a warp alone, waits of half as much again.
int64_t pass_cost(const ConvBudget& budget, int64_t threads, int64_t units, int64_t instructions) {
  // The block as a whole is no faster by more threads than it has.
  if (budget.rounds) return (threads + budget.threads - 1) / budget.threads * units * instructions;
  const int64_t warps = (threads + 127) / 128;
  return units * std::max(warps * instructions, instructions * 3 / 2);
}

// conv.cuh has instances for these.
int best_tile(int width) {
  int best = 0;
  for (const int tile : {8, 7, 5}) {
    if (best == 0 || up(width, tile) < up(width, best)) best = tile;
  }
  return best;
}

void set_filter_tiles(RowPass& pass) {
  pass.filters_a_thread = up(pass.filters, 3) < up(pass.filters, 4) ? 3 : 4;
  pass.filter_tiles = up(pass.filters, pass.filters_a_thread) / pass.filters_a_thread;
}

// A pass that makes [filters][rows][width] from `channels` planes.
void tile_pass(RowPass& pass, int width, const ConvBudget& budget) {
  set_filter_tiles(pass);
  pass.tile = best_tile(width);
  pass.strips = up(width, pass.tile) / pass.tile;
  pass.pitch = best_pitch(pass.strips * pass.tile, pass.tile, pass.strips, pass.out_rows);
  const int64_t threads = int64_t{pass.strips} * pass.out_rows * pass.filter_tiles;
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int splits = 1; splits <= pass.channels && pass.channels * splits < 1 << 16; ++splits) {
    const int64_t sums = int64_t{splits} * pass.filters * pass.out_rows * pass.pitch;
    if (splits > 1 && sums > budget.sums) break;
    // Adding up a sum takes about three instructions for each split.
    const int64_t adding = sums * 3 / 128;
    const int64_t cost = pass_cost(budget, threads * splits, (pass.channels + splits - 1) / splits, 500) + adding;
    if (cost < best) {
      best = cost;
      pass.splits = splits;
    }
  }
  pass.by_strip = Divisor(pass.strips);
  pass.by_filter_tile = Divisor(pass.strips * pass.out_rows);
  pass.by_split = Divisor(static_cast<int>(threads));
  pass.by_splits = Divisor(pass.splits);
}

// The weight gradient: threads are (row of the filter, channel, filter tile), the sum over dy's rows is split.
void tile_gradient(RowPass& pass, const ConvShape& conv, const ConvBudget& budget) {
  set_filter_tiles(pass);
  pass.strips = up(conv.out_width(), 2);
  pass.pitch = conv.filters * conv.channels * conv.rows * conv.columns;
  const int64_t threads = int64_t{conv.rows} * conv.channels * pass.filter_tiles;
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int splits = 1; splits <= conv.out_height() && conv.out_height() * splits < 1 << 16; ++splits) {
    const int64_t sums = int64_t{splits} * pass.pitch;
    if (splits > 1 && sums > budget.sums) break;
    const int64_t units = (conv.out_height() + splits - 1) / splits;
    const int64_t cost = pass_cost(budget, threads * splits, units, int64_t{pass.strips} * 25) + sums * 3 / 128;
    if (cost < best) {
      best = cost;
      pass.splits = splits;
    }
  }
  pass.by_split = Divisor(static_cast<int>(threads));
  pass.by_splits = Divisor(pass.splits);
}

// Floats that row_gradient() leaves of `items`.
int64_t row_sums(int items, int sums, bool rounds) {
  return int64_t{items} * kRowChannels * sums * (rounds ? 32 / kRowLanes : kRowPitch);
}

// The gradient towards x by rows, where it multiplies less than a pass over dy and its sums find room. Only widths and
// filters that it has instances for.
void plan_rows(ConvPlan& plan, const ConvShape& shape, const ConvBudget& budget) {
  struct Instance {
    int columns, width;
  };
  constexpr Instance kInstances[] = {{5, 8}, {5, 10}, {3, 8}, {3, 10}, {3, 14}};
  const int width = shape.out_width();
  RowPass& backward = plan.backward;
  for (const Instance& instance : kInstances) {
    if (instance.columns != shape.columns || instance.width < width) continue;
    constexpr int kChannels = kRowChannels * (32 / kRowLanes);
    const int groups = up(shape.channels, kChannels) / kChannels;
    const int64_t pass = int64_t{backward.filters_a_thread} * backward.filter_tiles * shape.filters * backward.strips *
                         backward.tile * shape.height;
    const int64_t rows =
        int64_t{groups} * kChannels * up(shape.filters, kRowLanes) * instance.width * shape.out_height();
    const int sums = instance.width + shape.columns - 1;
    const int64_t floats = row_sums(shape.height * groups, sums, budget.rounds);
    if (10 * rows > 9 * pass || 2 * floats > 3 * int64_t{budget.sums} || shape.height * groups >= 1 << 15) return;
    plan.by_rows = 1;
    plan.row_groups = groups;
    plan.row_sums = sums;
    plan.by_row_groups = Divisor(groups);
    backward.filters_a_thread = kRowChannels;
    backward.filter_tiles = up(shape.channels, kRowChannels) / kRowChannels;
    plan.dy_left = 0;
    // Lanes are neighbouring filters, and read 8 bytes each.
    plan.dy_pitch = std::max(up(instance.width, 2), plan.gradient.strips);
    plan.dy_plane = plan.dy_pitch * shape.out_height();
    if (plan.dy_plane % 4 == 0) plan.dy_plane += 2;
    return;
  }
}

}  // namespace

int64_t gradient_sums(const ConvPlan& conv, bool rounds) {
  if (conv.backward_data == 0) return 0;
  if (conv.by_rows > 0) return row_sums(conv.height * conv.row_groups, conv.row_sums, rounds);
  return int64_t{conv.backward.splits} * conv.channels * conv.height * conv.backward.pitch;
}

int64_t packed_filters(const ConvPlan& conv) {
  return int64_t{conv.channels} * conv.rows * conv.columns * conv.forward.filter_tiles * 4;
}

ConvPlan plan_conv(const ConvShape& shape, bool backward_data, const ConvBudget& budget) {
  ConvPlan plan{};
  plan.channels = shape.channels;
  plan.height = shape.height;
  plan.width = shape.width;
  plan.filters = shape.filters;
  plan.rows = shape.rows;
  plan.columns = shape.columns;
  plan.pooled_height = shape.pooled_height();
  plan.pooled_width = shape.pooled_width();
  plan.window_rows = shape.window[0];
  plan.window_columns = shape.window[1];
  plan.stride_rows = shape.stride[0];
  plan.stride_columns = shape.stride[1];
  plan.relu = shape.finish.activation == StepActivation::relu ? 1 : 0;
  plan.backward_data = backward_data ? 1 : 0;
  plan.weight_at = shape.weight;
  plan.bias_at = shape.bias;

  RowPass& forward = plan.forward;
  forward.channels = shape.channels;
  forward.filters = shape.filters;
  forward.rows = shape.rows;
  forward.columns = shape.columns;
  forward.x_rows = shape.height;
  forward.out_rows = shape.out_height();
  forward.pad_rows = shape.pad[0];
  RowPass& gradient = plan.gradient;
  gradient = forward;
  tile_pass(forward, shape.out_width(), budget);
  tile_gradient(gradient, shape, budget);

  const int x_width = std::max({forward.strips * forward.tile + shape.columns - 1, gradient.strips + shape.columns - 1,
                                shape.width + shape.pad[1]});
  plan.x_left = shape.pad[1];
  // Where few elements of dy are no zeros.
  plan.sparse = backward_data && !shape.kept() && shape.window[0] * shape.window[1] >= 4 &&
                (shape.columns == 3 || shape.columns == 5);
  if (plan.sparse != 0) gradient.splits = 0;
  plan.x_pitch = best_pitch(x_width, forward.tile, forward.strips, forward.out_rows, plan.sparse != 0);
  // Rows of zeros around it, for window_gradient().
  plan.x_top = plan.sparse != 0 ? shape.pad[0] : 0;
  plan.x_plane = plan.x_pitch * (shape.height + 2 * plan.x_top);
  if (backward_data) {
    // Neighbours among the gradient's threads have neighbouring rows, then the next channel: as if it were the next
    // row.
    const int apart = shape.rows * plan.x_pitch;
    plan.x_plane += ((apart - plan.x_plane) % 32 + 32) % 32;
  }
  forward.x_pitch = gradient.x_pitch = plan.x_pitch;
  forward.x_plane = gradient.x_plane = plan.x_plane;

  const int padding = backward_data ? shape.columns - 1 - shape.pad[1] : 0;
  plan.dy_left = up(padding, 2);
  plan.dy_pitch = plan.dy_left + gradient.strips;
  if (backward_data) {
    RowPass& backward = plan.backward;
    backward.channels = shape.filters;
    backward.filters = shape.channels;
    backward.rows = shape.rows;
    backward.columns = shape.columns;
    backward.x_rows = shape.out_height();
    backward.out_rows = shape.height;
    backward.pad_rows = shape.rows - 1 - shape.pad[0];
    tile_pass(backward, shape.width, budget);
    backward.x = plan.dy_left - padding;  // within a row
    const int width = std::max(plan.dy_pitch, backward.x + backward.strips * backward.tile + shape.columns - 1);
    plan.dy_pitch = best_pitch(width, backward.tile, backward.strips, shape.height);
  }
  plan.dy_plane = plan.dy_pitch * shape.out_height();
  if (backward_data) plan_rows(plan, shape, budget);
  plan.backward.x_pitch = plan.dy_pitch;
  plan.backward.x_plane = plan.dy_plane;

  plan.by_plane = Divisor(plan.pooled_height * plan.pooled_width);
  plan.by_row = Divisor(plan.pooled_width);
  plan.pool_groups = std::max(1, budget.threads / (plan.pooled_height * plan.pooled_width));
  plan.by_taps = Divisor(shape.rows * shape.columns);
  plan.filter_floats = shape.channels * shape.rows * shape.columns;
  plan.by_filter = Divisor(plan.filter_floats);
  plan.by_tile = Divisor(shape.filters * shape.rows * shape.columns);
  plan.by_width = Divisor(shape.width);
  plan.by_window = Divisor(shape.window[1]);
  plan.by_group = Divisor(shape.rows * shape.channels);
  plan.by_group_row = Divisor(shape.rows);
  return plan;
}

}  // namespace gpunn::cuda_tiled
