#include "subgraphs/step/plan_rounds.hpp"

#include <algorithm>
#include <limits>

#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/layout.hpp"
#include "subgraphs/step/plan_conv.hpp"

namespace gpunn::cuda_tiled {
namespace {

// What the system takes of each block's shared memory, and the static part.
constexpr int kBlockBytes = 1024 + kStepStaticBytes;

int bytes_of(const Layout& layout) {
  return static_cast<int>(std::min<int64_t>(layout.used() * 4, std::numeric_limits<int>::max()));
}

// Blocks for `images`, so that all have as many of them as they can or one less.
int blocks_for(int images, int bytes, int most, const StepLimits& limits) {
  const int room = (limits.shared + kBlockBytes) / (bytes + kBlockBytes);
  const int slots = std::max(1, std::min(most, room)) * limits.multiprocessors;
  const int rounds = (images + slots - 1) / slots;
  return (images + rounds - 1) / rounds;
}

// The block of dense layers, which has plan.rounds images: all x, logits, gradients, and sums of shares.
bool lay_out_dense(StepPlan& plan, Layout memory, const StepLimits& limits) {
  const int images = plan.rounds;
  const int apart = images + kDenseRoundPad;
  for (int i = 0; i < plan.n_dense; ++i) {
    DensePlan& dense = plan.dense[i];
    const int at = memory.take(int64_t{images} * dense.x_pitch);
    if (i > 0) dense.x = at;  // that of the first one is where it is in the convolutions' kernels
  }
  plan.logits = memory.take(int64_t{images} * plan.logits_pitch);
  for (int i = 0; i < plan.n_dense; ++i) {
    plan.dense[i].dy = memory.take(int64_t{plan.dense[i].outputs} * apart);
    FinishPlan& finish = plan.dense_finish[i];
    if (finish.kept != 0) finish.u = memory.take(int64_t{plan.dense[i].outputs} * images);
  }
  plan.scratch = memory.take(0);
  int64_t scratch = 0;
  for (int i = 0; i < plan.n_dense; ++i) {
    DensePlan& dense = plan.dense[i];
    if (dense.backward_data == 0) continue;
    // Outputs are dealt to as many shares as there are threads for.
    const int a_share = up(dense.inputs, 4) / 4 * std::max(images / 8, 1);
    dense.splits = std::clamp(kDenseRoundThreads / a_share, 1, std::min(dense.outputs, 8));
    dense.share = (dense.outputs + dense.splits - 1) / dense.splits;
    scratch = std::max(scratch, int64_t{dense.splits} * images * dense.x_pitch);
  }
  memory.take(scratch);
  plan.dense_bytes = bytes_of(memory);
  return plan.dense_bytes <= limits.shared;
}

}  // namespace

bool lay_out_rounds(StepPlan& plan, const StepLimits& limits) {
  Layout always;
  always.take(static_cast<int64_t>(plan_bytes(plan.parts != kNoParts)) / 4 + 1);
  const Layout dense = always;
  // What is kept of an image.
  plan.kept_from = always.take(0);
  plan.dense[0].x = always.take(plan.dense[0].x_pitch);
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    conv.x = always.take(int64_t{conv.channels} * conv.x_plane) + conv.x_top * conv.x_pitch;
    conv.forward.x = conv.gradient.x = conv.x;
  }
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    conv.chosen = always.take((int64_t{conv.filters} * conv.pooled_height * conv.pooled_width + 3) / 4) * 4;
  }
  plan.kept = always.take(0) - plan.kept_from;
  plan.zeros[0][0] = plan.kept_from;
  plan.zeros[0][1] = plan.kept_from + plan.kept;
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    conv.forward.w = always.take(packed_filters(conv));
    conv.bias = always.take(conv.filters);
  }
  Layout forward = always;
  Layout backward = always;
  int64_t sums = 0;
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    conv.forward.sums = forward.take(0);
    sums = std::max(sums, int64_t{conv.forward.splits} * conv.filters * conv.forward.out_rows * conv.forward.pitch);
  }
  forward.take(sums);

  plan.dense[0].received = backward.take(plan.dense[0].x_pitch);
  plan.totals = backward.take(plan.partials);
  lay_out_gradients(plan, backward);
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    FinishPlan& finish = plan.conv_finish[i];
    if (conv.sparse != 0) {
      conv.windows = backward.take(int64_t{2} * conv.filters * conv.pooled_height * conv.pooled_width);
    }
    if (finish.kept != 0) finish.u = backward.take(int64_t{conv.filters} * finish.plane);
    if (conv.backward_data != 0 && conv.by_rows == 0) {
      conv.backward.w =
          backward.take(int64_t{conv.filters} * conv.rows * conv.columns * conv.backward.filter_tiles * 4);
    }
  }
  const int backward_sums = backward.take(0);
  sums = 0;
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    conv.backward.sums = backward_sums;
    const int64_t dx = (gradient_sums(conv, true) + 3) / 4 * 4;
    conv.gradient.sums = static_cast<int>(std::min<int64_t>(backward_sums + dx, std::numeric_limits<int>::max()));
    sums = std::max(sums, dx + int64_t{conv.gradient.splits} * conv.gradient.pitch);
  }
  backward.take(sums);

  // A block begins with the samples of its images, where it has its sums later.
  plan.samples = forward.take(0);
  int most = 0;
  for (const int images : kDenseRoundImages) {
    plan.rounds = images;
    if (!lay_out_dense(plan, dense, limits)) break;
    most = images;
    if ((plan.batch + images - 1) / images <= limits.multiprocessors) break;
  }
  if (most == 0) return false;
  plan.rounds = most;
  if (!lay_out_dense(plan, dense, limits)) return false;
  plan.pass_blocks = (plan.batch + most - 1) / most;
  plan.partial_sums = 1;
  if (plan.n_convs == 0) return true;
  const int a_block = (plan.batch + limits.multiprocessors - 1) / limits.multiprocessors;
  forward.take(a_block);
  plan.shared_bytes = bytes_of(forward);
  plan.backward_bytes = bytes_of(backward);
  if (plan.shared_bytes > limits.shared || plan.backward_bytes > limits.shared) return false;
  plan.forward_blocks = blocks_for(plan.batch, plan.shared_bytes, ForwardRounds::kBlocks, limits);
  plan.backward_blocks = blocks_for(plan.batch, plan.backward_bytes, BackwardRounds::kBlocks, limits);
  plan.partial_sums = plan.backward_blocks;
  return true;
}

bool rounds_pay(const StepPlan& single, const StepLimits& limits) {
  // The time of a block an image grows by waves, of images that the GPU has at the same time. Large batches begin with
  // more: H200, LeNet-5 52 us and 0.115 an image, where a wave of 132 takes 31.5; MLP 784-128-10 14 and 0.03, where a
  // batch of 128 takes 14.5 and one of 256 is two waves, 32: clusters of 8 find no room on some multiprocessors.
  const int room = std::max(1, (limits.shared + kBlockBytes) / (single.shared_bytes + kBlockBytes));
  if (single.n_convs > 0) {
    constexpr int kWaves = 3;
    const int blocks = single.images == PairBlock::kImages ? PairBlock::kBlocks : OctetBlock::kBlocks;
    return single.batch > kWaves * std::min(room, blocks) * limits.multiprocessors;
  }
  return single.batch > std::min(room, OctetBlock::kBlocks) * limits.multiprocessors * 7 / 8;
}

}  // namespace gpunn::cuda_tiled
