// Lays out shared memory for the kernels in which a block has one image.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/layout.hpp"
#include "subgraphs/step/plan_conv.hpp"

namespace gpunn::cuda_tiled {
namespace {

// Numbers by channel that a batch norm keeps in shared memory: mean, 1 / deviation, gamma, beta, and two means of the
// gradient.
constexpr int kNormNumbers = 6;

}  // namespace

// The places in shared memory. A block's life has three parts, and what only one of them needs lies where another had
// what only it needed:
//
//   forward convolutions   x of all layers | dense weights | filters, sums
//   dense layers           x of all layers | dense weights | logits, dy, what other blocks send, sums
//   backward convolutions  x of all layers | dy            | sums
void lay_out_gradients(StepPlan& plan, Layout& backward) {
  plan.zeros[1][0] = backward.take(0);
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    conv.dy = conv.gradient.w = backward.take(int64_t{conv.filters} * conv.dy_plane);
    conv.backward.x += conv.dy;
  }
  plan.zeros[1][1] = backward.take(0);
}

void lay_out_shared(StepPlan& plan) {
  Layout always;
  always.take(static_cast<int64_t>(plan_bytes(plan.parts != kNoParts)) / 4 + 1);
  plan.zeros[0][0] = always.take(0);
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    conv.x = always.take(int64_t{conv.channels} * conv.x_plane) + conv.x_top * conv.x_pitch;
    conv.forward.x = conv.gradient.x = conv.x;
  }
  // The dense layers' x are cleared with them; other blocks store there when they are ready.
  DensePlan& bottom = plan.dense[0];
  for (int i = 0; i < plan.n_dense; ++i) plan.dense[i].x = always.take(int64_t{plan.images} * plan.dense[i].x_pitch);
  plan.zeros[0][1] = always.take(0);
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    conv.chosen = always.take((int64_t{conv.filters} * conv.pooled_height * conv.pooled_width + 3) / 4) * 4;
    if (conv.by_rows > 0) {
      conv.forward.w = always.take(packed_filters(conv));
    } else if (conv.backward_data != 0) {
      conv.backward.w = always.take(int64_t{conv.filters} * conv.rows * conv.columns * conv.backward.filter_tiles * 4);
    }
  }

  for (int i = 0; i < plan.n_convs; ++i) {
    const ConvPlan& conv = plan.conv[i];
    FinishPlan& finish = plan.conv_finish[i];
    if (finish.finish.norm.there != 0) finish.statistics = always.take(int64_t{kNormNumbers} * conv.filters);
  }
  for (int i = 0; i < plan.n_dense; ++i) {
    FinishPlan& finish = plan.dense_finish[i];
    const int64_t kept = int64_t{plan.dense[i].slice} * plan.images;
    if (finish.kept != 0) finish.u = always.take(kept);
    if (finish.finish.norm.there != 0) finish.statistics = always.take(int64_t{kNormNumbers} * plan.dense[i].slice);
  }

  Layout dense = always;
  for (int i = 0; i < plan.n_dense; ++i) {
    plan.dense[i].w = dense.take(int64_t{plan.dense[i].slice} * plan.dense[i].x_pitch);
    plan.dense[i].bias = dense.take(plan.dense[i].slice);
  }

  Layout forward = dense;
  int64_t sums = 0;
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    if (conv.by_rows == 0) conv.forward.w = forward.take(packed_filters(conv));
    conv.bias = forward.take(conv.filters);
    FinishPlan& finish = plan.conv_finish[i];
    finish.pick = finish.picks != 0 && i + 1 == plan.n_convs ? forward.take(finish.row_size) : -1;
    sums = std::max(sums, int64_t{conv.forward.splits} * conv.filters * conv.forward.out_rows * conv.forward.pitch);
  }
  const int forward_sums = forward.take(sums);

  Layout backward = always;
  lay_out_gradients(plan, backward);
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    if (conv.sparse != 0) {
      conv.windows = backward.take(int64_t{2} * conv.filters * conv.pooled_height * conv.pooled_width);
    }
  }
  for (int i = 0; i < plan.n_convs; ++i) {
    FinishPlan& finish = plan.conv_finish[i];
    if (finish.picks != 0) {
      finish.picked = backward.take(finish.row_size);
    } else if (finish.kept != 0) {
      finish.u = backward.take(int64_t{plan.conv[i].filters} * finish.plane);
    }
  }
  const int backward_sums = backward.take(0);
  int64_t most_sums = 0;
  for (int i = 0; i < plan.n_convs; ++i) {
    FinishPlan& finish = plan.conv_finish[i];
    if (finish.picks == 0) continue;
    // Read between the sums of the layer above and its own.
    finish.u = backward_sums;
    most_sums = std::max(most_sums, int64_t{plan.conv[i].filters} * finish.plane);
  }
  for (int i = 0; i < plan.n_convs; ++i) {
    ConvPlan& conv = plan.conv[i];
    conv.forward.sums = forward_sums;
    conv.backward.sums = backward_sums;
    const int64_t dx = (gradient_sums(conv, false) + 3) / 4 * 4;
    conv.gradient.sums = static_cast<int>(std::min<int64_t>(backward_sums + dx, std::numeric_limits<int>::max()));
    most_sums = std::max(most_sums, dx + int64_t{conv.gradient.splits} * conv.gradient.pitch);
  }
  backward.take(most_sums);

  Layout middle = dense;
  plan.logits = middle.take(int64_t{plan.images} * plan.logits_pitch);
  sums = 0;
  for (int i = 0; i < plan.n_dense; ++i) {
    DensePlan& layer = plan.dense[i];
    layer.dy = middle.take(int64_t{layer.slice} * plan.images);
    sums = std::max(sums, int64_t{layer.splits} * layer.slice * plan.images);
    if (i > 0 && layer.sliced != 0) {
      layer.received = middle.take(int64_t{kStepShares} * plan.dense[i - 1].slice * plan.images);
    }
  }
  plan.scratch = middle.take(sums);
  // What the dense layers leave to the convolutions must not lie where dy is.
  if (plan.n_convs > 0) {
    middle.skip_to(backward_sums);
    bottom.received = middle.take(int64_t{bottom.sliced != 0 ? kStepShares : 1} * bottom.x_pitch);
  }
  const int64_t used = std::max({forward.used(), middle.used(), backward.used()});
  plan.shared_bytes = static_cast<int>(std::min<int64_t>(used * 4, std::numeric_limits<int>::max()));
}

}  // namespace gpunn::cuda_tiled
