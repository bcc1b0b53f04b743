#include "subgraphs/step/plan.hpp"

#include <algorithm>
#include <bit>

#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/layout.hpp"
#include "subgraphs/step/plan_conv.hpp"
#include "subgraphs/step/plan_rounds.hpp"

namespace gpunn::cuda_tiled {
namespace {

// What a rank sends of its gradients in a step, at most. Sums of more bytes pass each link once instead.
constexpr int64_t kMostSentBytes = int64_t{8} << 20;
// Warps that share a channel's sums of an image, at most.
constexpr int kNormParts = 4;

// Half of a multiprocessor's 228 KiB, less what the system and the static part take of each.
constexpr int kTwoBlocks = 114 * 1024 - 1024 - 256;
// All of it, less the static parts and a block of the second kernel, which should find room beside one of the first.
constexpr int kBesideUpdate = 228 * 1024 - 1536 - 47 * 1024 - 256;

// Rows of a matrix that 8 threads read at once by 16 bytes: an odd number of 16 bytes apart they meet no bank twice.
int dense_pitch(int n) {
  const int pitch = up(n, 4);
  return pitch / 4 % 2 == 0 ? pitch + 4 : pitch;
}

std::string refuse(const StepNetwork& network) {
  if (network.convs.size() > kMostStepConvs || network.dense.size() > kMostStepDense) return "too many layers";
  if (network.dense.empty()) return "no dense layer";
  for (const ConvShape& conv : network.convs) {
    if (conv.pad[0] >= conv.rows || conv.pad[1] >= conv.columns) return "padding as wide as the filter";
    if (conv.stride[0] < conv.window[0] || conv.stride[1] < conv.window[1]) return "windows that overlap";
    if (conv.window[0] * conv.window[1] > 254) return "windows of more than 254 elements";
    if (conv.out_height() < conv.window[0] || conv.out_width() < conv.window[1]) return "a window beyond the image";
    if (conv.columns > 7 || conv.rows > 7) return "filters of more than 7 rows or columns";
  }
  constexpr int kMostNormal = 700;  // a thread has two channels at most
  for (const DenseShape& dense : network.dense) {
    if (dense.finish.norm.there != 0 && dense.outputs > kMostNormal) return "batch norm of more than 700 outputs";
  }
  return {};
}

// Whether norm and activation keep or turn round the order of a window's elements, of which only the largest goes on.
// Of fewer than four it would not pay.
bool picks(const ConvShape& conv) {
  const StepFinish& finish = conv.finish;
  const bool ordered =
      finish.activation == StepActivation::leaky_relu ? finish.slope >= 0.0F : known_by_result(finish.activation);
  return finish.norm.there != 0 && !conv.mean && ordered && conv.window[0] * conv.window[1] >= 4;
}

// What the first kernel has to know.
unsigned parts_of(const StepNetwork& network) {
  unsigned parts = kNoParts;
  const auto look = [&](const StepFinish& finish) {
    if (finish.norm.there != 0) parts |= kNormPart;
    if (finish.dropout.threshold != 0 || finish.activation > StepActivation::relu) parts |= kFinishPart;
  };
  for (const ConvShape& conv : network.convs) {
    look(conv.finish);
    if (conv.mean || (conv.finish.norm.there != 0 && !picks(conv))) parts |= kFinishPart;
  }
  for (const DenseShape& dense : network.dense) look(dense.finish);
  if (network.loss != StepLoss::cross_entropy || network.told || network.metrics != network.ranks) parts |= kLossPart;
  if (network.ready || network.shifted) parts |= kBatchPart;
  return parts;
}

// Those of the smallest instance that knows them.
template <class B>
unsigned instance_with(unsigned parts, int columns) {
  if (B::kRounds) return parts == kNoParts ? kNoParts : kRoundParts;
  constexpr int images = B::kImages;
  // Networks of mixed filters have the smallest and the largest alone.
  const bool few = columns == kAnyColumns || (images != PairBlock::kImages && columns != kNoFilters);
  for (const unsigned instance : {kNoParts, kNormPart, kFinishPart, kLossPart | kBatchPart}) {
    if ((parts & ~instance) == 0 && (instance == kNoParts || !few)) return instance;
  }
  return kAllParts;
}

unsigned update_parts_of(const StepNetwork& network, unsigned parts) {
  const bool ranks = network.world > 1;
  if (network.ready || network.flat || !network.advances || network.rates == 0 || network.told ||
      (ranks && (parts & kNormPart) != 0)) {
    return kAllUpdateParts | (ranks ? kRankPart : kNoParts);
  }
  return ranks ? kRankPart : parts & kNormPart;
}

// The end of all parameters, in elements.
int64_t end_of_parameters(const StepNetwork& network) {
  int64_t end = 0;
  const auto reach = [&](int64_t at, int64_t size) { end = std::max(end, at < 0 ? 0 : at + size); };
  const auto reach_norm = [&](const StepNorm& norm, int64_t channels) {
    if (norm.there == 0) return;
    reach(norm.gamma, channels);
    reach(norm.beta, channels);
  };
  for (const ConvShape& conv : network.convs) {
    reach(conv.weight, int64_t{conv.filters} * conv.channels * conv.rows * conv.columns);
    reach(conv.bias, conv.filters);
    reach_norm(conv.finish.norm, conv.filters);
  }
  for (const DenseShape& dense : network.dense) {
    reach(dense.weight, int64_t{dense.inputs} * dense.outputs);
    reach(dense.bias, dense.outputs);
    reach_norm(dense.finish.norm, dense.outputs);
  }
  return end;
}

// Slots of a dense product's sums: see dense.cuh.
int dense_splits(int rows, int length, int images, int warps) {
  const int tile = dense_tile(images);
  return std::max(1, std::min(warps / (up(rows, tile) / tile), up(length, 4) / 4));
}

FinishPlan plan_finish(const StepFinish& finish, int channels, int size) {
  FinishPlan plan{};
  plan.finish = finish;
  plan.channels = channels;
  plan.size = size;
  plan.mean_share = 1.0F;
  plan.by_size = Divisor(std::max(size, 1));
  return plan;
}

// `threads` are those of the forward convolutions.
FinishPlan plan_finish(const ConvShape& conv, int pitch, int threads) {
  FinishPlan plan = plan_finish(conv.finish, conv.filters, conv.out_height() * conv.out_width());
  plan.plane = conv.out_height() * pitch;
  plan.by_plane = Divisor(plan.plane);
  plan.kept = conv.kept() ? 1 : 0;
  plan.mean = conv.mean ? 1 : 0;
  plan.mean_share = 1.0F / static_cast<float>(conv.window[0] * conv.window[1]);
  plan.row_size = conv.pooled_size();
  plan.out_width = conv.out_width();
  plan.by_out_row = Divisor(conv.out_width());
  plan.by_pitch = Divisor(pitch);
  plan.picks = picks(conv) ? 1 : 0;
  int share = 4;
  while (2 * share * conv.filters <= threads && share < 32 * kNormParts) share *= 2;
  const int lanes = std::min(share, 32);
  const int parts = share / lanes;
  plan.lanes_log = std::countr_zero(static_cast<unsigned>(lanes));
  plan.parts_log = std::countr_zero(static_cast<unsigned>(parts));
  plan.part_rows = up(conv.out_height(), parts) / parts;
  plan.part_windows = up(conv.pooled_height() * conv.pooled_width(), parts) / parts;
  return plan;
}

FinishPlan plan_finish(const DenseShape& dense) {
  FinishPlan plan = plan_finish(dense.finish, dense.outputs, 1);
  plan.kept = dense.finish.norm.there != 0 || !known_by_result(dense.finish.activation) ? 1 : 0;
  plan.row_size = dense.outputs;
  return plan;
}

// What kernels with parts know besides.
template <class B>
void lay_out_general(StepPlan& plan, const StepNetwork& network) {
  plan.ready = network.ready ? 1 : 0;
  plan.shifted = network.shifted ? 1 : 0;
  plan.shift = network.shift;
  plan.height = network.height;
  plan.width = network.width;
  plan.by_width = Divisor(std::max(network.width, 1));
  plan.loss = network.loss;
  plan.targets = network.targets;
  plan.target_rows = network.target_rows;
  plan.loss_a = network.loss_a;
  plan.loss_power = network.loss_power;
  plan.counted = network.counted ? 1 : 0;
  plan.ranked = network.ranks ? 1 : 0;
  plan.advances = network.advances ? 1 : 0;
  plan.flat = network.flat ? 1 : 0;
  plan.flat_ops = static_cast<int>(network.flat_ops.size());
  plan.before_norm = network.before_norm;
  plan.flat_size = static_cast<int>(network.flat_size);
  plan.flat_blocks = network.before_norm >= 0 ? up(plan.flat_size, kUpdateThreads) / kUpdateThreads : 0;
  plan.norm_history = network.norm_history;
  std::copy(network.flat_ops.begin(), network.flat_ops.end(), plan.flat_op);
  for (int i = 0; i < plan.n_convs; ++i) {
    plan.conv_finish[i] = plan_finish(network.convs[i], plan.conv[i].forward.pitch, B::kThreads - 32);
  }
  for (int i = 0; i < plan.n_dense; ++i) plan.dense_finish[i] = plan_finish(network.dense[i]);
}

// Everything for one budget of sums, in floats. Nothing where large batches don't fit.
template <class B>
std::optional<StepPlan> lay_out(const StepNetwork& network, int budget, const StepLimits& limits) {
  constexpr int kForwardThreads = B::kRounds ? B::kThreads : WithoutLastWarp<B>::kThreads;
  StepPlan plan{};
  plan.sample = network.sample;
  const gpunn_sample_attrs& sample = network.sample;
  plan.steps = sample.drop_last != 0 ? sample.rows / sample.batch : (sample.rows + sample.batch - 1) / sample.batch;
  plan.data_rows = network.data_rows;
  plan.label_rows = network.label_rows;
  plan.sample_size = network.channels * network.height * network.width;
  plan.by_channel = Divisor(network.height * network.width);
  plan.data_type = network.data_type;
  plan.label_type = network.label_type;
  plan.batch = network.rows;
  plan.first_row = network.first_row;
  plan.world = network.world;
  plan.loss_weight = network.loss_weight;
  plan.words = network.world > 1 ? end_of_parameters(network) + 1 : 0;
  plan.pass_advance = network.pass_advance;
  plan.images = B::kImages;
  plan.n_convs = static_cast<int>(network.convs.size());
  plan.n_dense = static_cast<int>(network.dense.size());
  for (int i = 0; i < plan.n_convs; ++i) {
    plan.conv[i] =
        plan_conv(network.convs[i], i > 0, {.sums = budget, .threads = kForwardThreads, .rounds = B::kRounds});
    plan.filter_floats += plan.conv[i].gradient.pitch;
    plan.conv[i].weight_from = plan.partials;
    plan.conv[i].bias_from = plan.partials + plan.conv[i].gradient.pitch;
    plan.partials = plan.conv[i].bias_from + plan.conv[i].filters;
  }
  plan.columns = kNoFilters;
  for (const ConvShape& conv : network.convs) {
    const bool all = conv.columns == network.convs[0].columns && (conv.columns == 3 || conv.columns == 5);
    plan.columns = all && plan.columns != kAnyColumns ? conv.columns : kAnyColumns;
  }
  const unsigned parts = parts_of(network);
  plan.parts = instance_with<B>(parts, plan.columns);
  plan.update_parts = update_parts_of(network, parts);
  bool sliced = false;
  for (int i = plan.n_dense - 1; i >= 0; --i) {
    const DenseShape& shape = network.dense[i];
    DensePlan& dense = plan.dense[i];
    dense.inputs = shape.inputs;
    dense.outputs = shape.outputs;
    dense.relu = shape.finish.activation == StepActivation::relu ? 1 : 0;
    dense.weight_at = shape.weight;
    dense.bias_at = shape.bias;
    // To make a small layer in each block costs less than a barrier of the cluster. Below a sliced layer all are.
    sliced = sliced || (!B::kRounds && int64_t{shape.inputs} * shape.outputs > 4096 && i + 1 < plan.n_dense);
    dense.sliced = sliced ? 1 : 0;
    // Outputs are sent to other blocks by four.
    dense.slice = sliced ? up((shape.outputs + plan.images - 1) / plan.images, 4) : shape.outputs;
    dense.x_pitch = dense_pitch(shape.inputs);
    dense.backward_data = i > 0 || plan.n_convs > 0 ? 1 : 0;
    dense.splits = B::kRounds ? 1 : dense_splits(dense.slice, dense.inputs, plan.images, B::kThreads / 32);
    dense.share = (up(dense.inputs, 4) / 4 + dense.splits - 1) / dense.splits;
    dense.by_splits = Divisor(dense.splits);
    dense.by_slice = Divisor(dense.slice);
    dense.by_fours = Divisor((dense.inputs + 3) / 4);
  }
  plan.logits_pitch = dense_pitch(plan.dense[plan.n_dense - 1].outputs);
  lay_out_general<B>(plan, network);
  if constexpr (B::kRounds) {
    if (!lay_out_rounds(plan, limits)) return std::nullopt;
  } else {
    lay_out_shared(plan);
    if (plan.shared_bytes > limits.shared) return std::nullopt;
    plan.pass_blocks = up(plan.batch, plan.images);
    plan.partial_sums = plan.batch;
  }
  lay_out_workspace(plan);

  plan.loss_gradient = network.loss_gradient;
  plan.optimizer = network.optimizer;
  plan.sgd = network.sgd;
  plan.adam = network.adam;
  plan.rates = network.rates;
  plan.history = network.history;
  plan.metrics = network.metrics ? 1 : 0;
  plan.advance = network.advance;
  return plan;
}

// Sizes that could not fit are refused before anything is multiplied.
bool is_small(const StepNetwork& network) {
  constexpr int64_t kMost = (1 << 16) - 1;  // Divisor
  bool small = int64_t{network.channels} * network.height * network.width <= kMost && network.rows <= 8192;
  for (const ConvShape& conv : network.convs) {
    small = small && int64_t{conv.channels} * conv.height * conv.width <= kMost &&
            int64_t{conv.filters} * conv.out_height() * (conv.out_width() + 24) <= kMost &&
            int64_t{conv.filters} * conv.channels * conv.rows * conv.columns <= kMost && conv.weight <= 1 << 30 &&
            conv.bias <= 1 << 30;
  }
  for (const DenseShape& dense : network.dense) {
    small = small && dense.inputs <= kMost && dense.outputs <= kMost &&
            int64_t{dense.inputs} * dense.outputs <= 1 << 20 && dense.weight <= 1 << 30 && dense.bias <= 1 << 30;
  }
  return small;
}

// Sums in more parts keep more threads busy, as long as there is room.
template <class B>
std::optional<StepPlan> largest_that_fits(const StepNetwork& network, const StepLimits& limits, int least = 512) {
  for (int budget = 16384; budget >= least; budget /= 2) {
    if (auto plan = lay_out<B>(network, budget, limits)) return plan;
  }
  return std::nullopt;
}

// A block an image.
StepPlanned plan_single(const StepNetwork& network, const StepLimits& limits) {
  const auto within = [&](int bytes) {
    return StepLimits{.shared = std::min(limits.shared, bytes), .multiprocessors = limits.multiprocessors};
  };
  // Where convolutions run first, more weights a block are fetched for nothing.
  if (!network.convs.empty()) {
    constexpr int kEnough = 4096;  // with fewer sums the first kernel would lose more than the second one wins
    if (const auto plan = largest_that_fits<PairBlock>(network, within(kBesideUpdate), kEnough)) return {plan, {}};
    if (const auto plan = largest_that_fits<PairBlock>(network, limits)) return {plan, {}};
  }
  if (const auto plan = largest_that_fits<OctetBlock>(network, within(kTwoBlocks))) return {plan, {}};
  if (const auto plan = largest_that_fits<OctetBlock>(network, limits)) return {plan, {}};
  return {std::nullopt, "too large for shared memory"};
}

// Sums enough for one part of what a block has at once: more blocks find room so.
std::optional<StepPlan> plan_rounds(const StepNetwork& network, const StepLimits& limits) {
  constexpr int kSums = 4096;
  if ((parts_of(network) & kNormPart) != 0) return std::nullopt;
  return lay_out<ForwardRounds>(network, kSums, limits);
}

// Why ranks can't add up their gradients within the step. Empty: they can.
std::string refuse_ranks(const StepPlan& plan, const StepLimits& limits) {
  if (plan.world > kMostStepRanks) return "more than " + std::to_string(kMostStepRanks) + " ranks";
  if (plan.words * (plan.world - 1) * static_cast<int64_t>(sizeof(uint64_t)) > kMostSentBytes) {
    return "gradients of too many bytes for an exchange within the step";
  }
  // What counts and draws are two blocks more. A multiprocessor has room for two by the kernel's launch bounds.
  if (plan.update_blocks + 2 > 2 * limits.multiprocessors) return "more blocks that wait for ranks than the GPU has";
  return {};
}

}  // namespace

StepPlanned make_step_plan(const StepNetwork& network, const StepLimits& limits) {
  std::string refusal = refuse(network);
  if (refusal.empty() && !is_small(network)) refusal = "too large for shared memory";
  if (!refusal.empty()) return {std::nullopt, refusal};
  StepPlanned planned = plan_single(network, limits);
  if (!planned.plan || rounds_pay(*planned.plan, limits)) {
    if (const auto plan = plan_rounds(network, limits)) planned = {plan, {}};
  }
  if (planned.plan && network.world > 1) refusal = refuse_ranks(*planned.plan, limits);
  if (!refusal.empty()) return {std::nullopt, refusal};
  return planned;
}

}  // namespace gpunn::cuda_tiled
