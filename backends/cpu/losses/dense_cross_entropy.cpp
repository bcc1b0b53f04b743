// CROSS_ENTROPY and its backward: the largest score of a position, then the sum of the exponentials. Strips of
// positions are vectors along the positions, rows of classes are vectors along the classes.
//
// Labels come from device memory and are checked one by one. The score of a label is read only if the label is a class.
#include <gpunn/kernel.hpp>

#include <cmath>
#include <limits>
#include <numeric>

#include "add_op.hpp"
#include "kernels.hpp"
#include "losses/class_scores.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

struct EntropyPlan {
  CrossEntropy entropy{};
  RowBlocks blocks{};
  const ClassScoresKernels* kernels = nullptr;
  uint64_t workspace_bytes = blocks.workspace_bytes();

  const ClassScores& shape() const { return entropy.shape; }
  float share() const { return entropy.smoothing / static_cast<float>(shape().classes); }
};

EntropyPlan make_entropy_plan(const CrossEntropy& entropy, int32_t dtype, int threads) {
  return {.entropy = entropy,
          .blocks = blocks_of(entropy.shape, dtype, threads),
          .kernels = &GPUNN_SELECT_ISA(class_scores_kernels)};
}

EntropyPlan plan_entropy(const OpDesc& desc, int threads) {
  return make_entropy_plan(dense_cross_entropy_of(desc), desc.input(0).dtype, threads);
}

EntropyPlan plan_entropy_backward(const OpDesc& desc, int threads) {
  return make_entropy_plan(dense_cross_entropy_backward_of(desc), desc.input(1).dtype, threads);
}

// Labels and weights, and what they make of the outputs.
struct EntropyLabels {
  const CrossEntropy& entropy;
  const int32_t* label;
  const float* weight;  // null: all are 1

  float weight_of(int64_t c) const { return weight != nullptr ? weight[c] : 1.0F; }
  bool count(int64_t position) const { return entropy.counts(label[position]); }

  // The loss of a label: `term` is lse - x of its class, and `all` the sum of those of all classes by their weights.
  float loss(int64_t position, float term, float all) const {
    const float own = (1.0F - entropy.smoothing) * weight_of(label[position]) * term;
    if (entropy.smoothing == 0.0F) return own;
    return own + entropy.smoothing / static_cast<float>(entropy.shape.classes) * all;
  }

  // Without a class that counts.
  float loss_of_none(int64_t position) const {
    return label[position] == entropy.ignore_index ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  }
};

EntropyLabels labels_of(const EntropyPlan& plan, const OpArgs& args, std::size_t label, std::size_t weight) {
  return {plan.entropy, args.in<int32_t>(label), plan.entropy.weighted ? args.in<float>(weight) : nullptr};
}

// Of `count` positions, x holding the score of class c of position i at x[i * step + c * stride].
struct EntropySums {
  const float* most;
  const float* log_sum;
  const float* all;
};

template <class T>
void store_outputs(const EntropyLabels& labels, const EntropySums& sums, const T* x, int64_t step, int64_t stride,
                   int64_t position, int64_t count, const OpArgs& args) {
  auto *loss = args.out<float>(0) + position, *share = args.out<float>(1) + position;
  auto* lse = args.out<float>(2) + position;
  for (int64_t i = 0; i < count; ++i) {
    lse[i] = sums.most[i] + sums.log_sum[i];
    if (!labels.count(position + i)) {
      loss[i] = labels.loss_of_none(position + i);
      share[i] = 0.0F;
      continue;
    }
    const int32_t label = labels.label[position + i];
    const float below = static_cast<float>(x[i * step + label * stride]) - sums.most[i];
    loss[i] = labels.loss(position + i, sums.log_sum[i] - below, sums.all[i]);
    share[i] = labels.weight_of(label);
  }
}

template <class T>
void run_entropy_strips(const EntropyPlan& plan, const OpArgs& args) {
  const ClassScores& shape = plan.shape();
  const EntropyLabels labels = labels_of(plan, args, 1, 2);
  for_each_strip(shape, shape.positions(), plan.blocks.threads, [&](const Strip& strip, int /*thread*/) {
    float most[kPositionStrip], sum[kPositionStrip] = {}, all[kPositionStrip] = {}, wide[kPositionStrip];
    const T* x = args.in<T>(0) + strip.first;
    const auto of_class = [&](int64_t c) { return as_wide(x + c * shape.inner, strip.count, wide); };
    std::fill(most, most + strip.count, -std::numeric_limits<float>::infinity());
    for (int64_t c = 0; c < shape.classes; ++c) plan.kernels->raise(of_class(c), most, strip.count);
    for (int64_t c = 0; c < shape.classes; ++c) plan.kernels->add_exp(of_class(c), most, sum, strip.count);
    for (int64_t i = 0; i < strip.count; ++i) sum[i] = std::log(sum[i]);
    for (int64_t c = 0; c < shape.classes && plan.entropy.smoothing > 0.0F; ++c) {
      plan.kernels->add_terms(of_class(c), labels.weight_of(c), most, sum, all, strip.count);
    }
    store_outputs(labels, {most, sum, all}, x, 1, shape.inner, strip.position, strip.count, args);
  });
}

template <class T>
void run_entropy_rows(const EntropyPlan& plan, const OpArgs& args) {
  const int64_t classes = plan.shape().classes;
  const EntropyLabels labels = labels_of(plan, args, 1, 2);
  plan.blocks.for_each(args, [&](int64_t row, int64_t rows, float* strip) {
    float most[kRowBlock], sum[kRowBlock], all[kRowBlock] = {};
    const float* x = as_wide(args.in<T>(0) + row * classes, rows * classes, strip);
    plan.kernels->exp_sums(x, most, sum, rows, classes);
    for (int64_t i = 0; i < rows; ++i) sum[i] = std::log(sum[i]);
    for (int64_t i = 0; i < rows && plan.entropy.smoothing > 0.0F; ++i) {
      all[i] = plan.kernels->terms(x + i * classes, labels.weight, most[i], sum[i], classes);
    }
    store_outputs(labels, {most, sum, all}, x, classes, 1, row, rows, args);
  });
}

template <class T>
void run_entropy(const EntropyPlan& plan, const OpArgs& args) {
  if (plan.shape().inner == 1) return run_entropy_rows<T>(plan, args);
  run_entropy_strips<T>(plan, args);
}

// --- CROSS_ENTROPY_BACKWARD ---

float sum_of_weights(const EntropyLabels& labels) {
  const int64_t classes = labels.entropy.shape.classes;
  if (labels.weight == nullptr) return static_cast<float>(classes);
  return static_cast<float>(std::accumulate(labels.weight, labels.weight + classes, 0.0));
}

// For `count` positions from `position` on. `hit` and `label` are buffers.
EntropySlope slopes_of(const EntropyPlan& plan, const OpArgs& args, const EntropyLabels& labels, float weights,
                       int64_t position, int64_t count, float* hit, int32_t* label) {
  for (int64_t i = 0; i < count; ++i) {
    label[i] = labels.count(position + i) ? labels.label[position + i] : -1;
    hit[i] = label[i] < 0 ? 0.0F : (1.0F - plan.entropy.smoothing) * labels.weight_of(label[i]);
  }
  return {.lse = args.in<float>(3) + position,
          .dloss = args.in<float>(0) + position,
          .hit = hit,
          .label = label,
          .share = plan.share(),
          .weights = weights};
}

template <class T>
void run_slope_strips(const EntropyPlan& plan, const OpArgs& args) {
  const ClassScores& shape = plan.shape();
  const EntropyLabels labels = labels_of(plan, args, 2, 4);
  const float weights = sum_of_weights(labels);
  for_each_strip(shape, shape.positions(), plan.blocks.threads, [&](const Strip& strip, int /*thread*/) {
    float hit[kPositionStrip], wide[kPositionStrip];
    int32_t label[kPositionStrip];
    const EntropySlope slopes = slopes_of(plan, args, labels, weights, strip.position, strip.count, hit, label);
    for (int64_t c = 0; c < shape.classes; ++c) {
      const int64_t first = strip.first + c * shape.inner;
      T* dx = args.out<T>(0) + first;
      plan.kernels->slope(as_wide(args.in<T>(1) + first, strip.count, wide), slopes, static_cast<int32_t>(c),
                          labels.weight_of(c), wide_target(dx, wide), strip.count);
      put_narrow(wide, dx, strip.count);
    }
  });
}

template <class T>
void run_slope_rows(const EntropyPlan& plan, const OpArgs& args) {
  const int64_t classes = plan.shape().classes;
  const EntropyLabels labels = labels_of(plan, args, 2, 4);
  const float weights = sum_of_weights(labels);
  plan.blocks.for_each(args, [&](int64_t row, int64_t rows, float* strip) {
    float hit[kRowBlock];
    int32_t label[kRowBlock];
    const EntropySlope slopes = slopes_of(plan, args, labels, weights, row, rows, hit, label);
    T* dx = args.out<T>(0) + row * classes;
    plan.kernels->row_slopes(as_wide(args.in<T>(1) + row * classes, rows * classes, strip), slopes, labels.weight,
                             wide_target(dx, strip), rows, classes);
    put_narrow(strip, dx, rows * classes);
  });
}

template <class T>
void run_entropy_backward(const EntropyPlan& plan, const OpArgs& args) {
  if (plan.shape().inner == 1) return run_slope_rows<T>(plan, args);
  run_slope_strips<T>(plan, args);
}

}  // namespace

void add_dense_cross_entropy_kernels(plugin::Device& device) {
  const int threads = thread_count();
  add_floating_op(
      device, GPUNN_OP_CROSS_ENTROPY, plan_entropy, [](auto x) { return run_entropy<decltype(x)>; },
      Layouts::channels_last_too);
  serve(
      device, GPUNN_OP_CROSS_ENTROPY_BACKWARD,
      [threads](const OpDesc& desc) { return plan_entropy_backward(desc, threads); },
      each_floating([](auto x) { return run_entropy_backward<decltype(x)>; }, 1), Dtypes::floating,
      Layouts::channels_last_too);
}

}  // namespace gpunn::cpu
