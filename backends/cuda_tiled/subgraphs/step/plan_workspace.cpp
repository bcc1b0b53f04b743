// Lays out the workspace, in which the first kernel leaves what the second one reads.
#include <cstdint>

#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/layout.hpp"

namespace gpunn::cuda_tiled {

void lay_out_workspace(StepPlan& plan) {
  Layout memory;
  plan.head = memory.take(16);
  plan.losses = memory.take(plan.batch);
  plan.ranks = memory.take(plan.batch);
  for (int i = 0; i < plan.n_dense; ++i) {
    DensePlan& dense = plan.dense[i];
    dense.dy_pitch = up(dense.outputs, 4);
    dense.x_rows = memory.take(int64_t{plan.batch} * dense.x_pitch);
    dense.dy_rows = memory.take(int64_t{plan.batch} * dense.dy_pitch);
    dense.first_tile = plan.dense_blocks;
    dense.tile_columns = up(dense.inputs, kUpdateColumns) / kUpdateColumns;
    plan.dense_blocks += up(dense.outputs, kUpdateRows) / kUpdateRows * dense.tile_columns;
    dense.first_bias = plan.bias_blocks;
    plan.bias_blocks += up(dense.outputs, kUpdateSums) / kUpdateSums;
  }
  plan.partial_rows = memory.take(int64_t{plan.partial_sums} * plan.partials);
  if (plan.rounds > 0 && plan.n_convs > 0) {
    plan.kept_rows = memory.take(int64_t{plan.batch} * plan.kept);
    plan.dx_rows = memory.take(int64_t{plan.batch} * plan.dense[0].x_pitch);
  }
  const int64_t rows = up(plan.batch, plan.images);
  const auto norm = [&](FinishPlan& finish) {
    if (finish.finish.norm.there == 0) return;
    finish.first_norm = plan.norms;
    plan.norms += 2 * finish.channels;
    finish.norm_index = plan.norm_layers++;
    // Forward and backward.
    finish.exchange = plan.exchange;
    plan.exchange += 2 * (finish.sources + kResultCopies) * finish.channels;
  };
  for (int i = 0; i < plan.n_convs; ++i) {
    FinishPlan& finish = plan.conv_finish[i];
    if (finish.kept != 0) finish.saved = memory.take(rows * up(plan.conv[i].filters * finish.plane, 4));
    if (finish.picks != 0) finish.saved_picks = memory.take(rows * up(finish.row_size, 4));
    finish.sources = static_cast<int>(rows) << finish.parts_log;
    norm(finish);
  }
  for (int i = 0; i < plan.n_dense; ++i) {
    plan.dense_finish[i].sources = static_cast<int>(rows) / plan.images;
    norm(plan.dense_finish[i]);
  }
  plan.norm_gradients = memory.take(int64_t{2} * plan.norms);
  plan.norm_blocks = up(plan.norms, kUpdateSums) / kUpdateSums;
  plan.partial_blocks = up(plan.partials, kUpdateSums) / kUpdateSums;
  plan.update_blocks = plan.dense_blocks + plan.partial_blocks + plan.bias_blocks + plan.norm_blocks;
  plan.squares = memory.take(plan.update_blocks);
  plan.workspace_bytes = static_cast<uint64_t>(memory.used()) * 4;
}

}  // namespace gpunn::cuda_tiled
