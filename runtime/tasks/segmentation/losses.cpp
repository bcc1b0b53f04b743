// Losses of pixels. All are built of cross-entropies and of core ops, so that their gradients follow.
#include "tasks/losses.hpp"

#include <gpunn/ops.h>

#include <cmath>
#include <numeric>
#include <variant>

#include "graph/expressions.hpp"
#include "tasks/segmentation/segmentation.hpp"

namespace gpunn::tasks::pixels {

using graph::Attributes;
using graph::Expressions;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

constexpr const char* kWeights = "data.class_weights";  // f32[C]
constexpr const char* kNumbers = "data.class_numbers";  // f32[1,C,1,1]: 0, 1, 2, ...
constexpr double kLeastDivisor = 1e-7;                  // of sums of probabilities

// The losses of a configuration, each with the weight that it has in a sum.
struct Terms {
  double cross_entropy = 0, dice = 0, focal = 0;
  double label_smoothing = 0, gamma = 0, smooth = 0;
};

Terms terms_of(const LossConfig& loss) {
  if (const auto* entropy = std::get_if<CrossEntropy>(&loss.kind)) {
    return {.cross_entropy = 1, .label_smoothing = entropy->label_smoothing};
  }
  if (const auto* dice = std::get_if<Dice>(&loss.kind)) return {.dice = 1, .smooth = dice->smooth};
  if (const auto* focal = std::get_if<Focal>(&loss.kind)) return {.focal = 1, .gamma = focal->gamma};
  const auto& sum = std::get<LossSum>(loss.kind);
  return {sum.cross_entropy, sum.dice, sum.focal, sum.label_smoothing, sum.gamma, sum.smooth};
}

bool has_weights(const LossConfig& loss) {
  return loss.class_weights() != nullptr && !loss.class_weights()->class_weights.empty();
}

class PixelLosses {
 public:
  PixelLosses(Graph& g, const TaskContext& c, ValueId logits, ValueId labels, Phase phase)
      : g_(g), e_(g, "loss"), c_(c), logits_(logits), labels_(labels), training_(phase == Phase::training) {}

  ValueId sum_of(const Terms& terms) {
    ValueId sum = graph::kNoValue;
    const auto add = [&](double weight, const auto& loss) {
      if (weight == 0) return;
      const ValueId term = weight == 1 ? loss() : e_.scaled(loss(), weight);
      sum = sum == graph::kNoValue ? term : e_.add(sum, term);
    };
    add(terms.cross_entropy, [&] { return cross_entropy(training_ ? terms.label_smoothing : 0); });
    add(terms.focal, [&] { return focal(terms.gamma); });
    add(terms.dice, [&] { return dice(terms.smooth); });
    return sum;
  }

 private:
  // Outputs of CROSS_ENTROPY, f32[N,H,W].
  struct Entropy {
    double smoothing = 0;
    ValueId loss = graph::kNoValue, share = graph::kNoValue, log_sum = graph::kNoValue;
  };

  // Terms of equal smoothing share one.
  Entropy entropy(double smoothing) {
    for (const Entropy& one : entropies_) {
      if (one.smoothing == smoothing) return one;
    }
    const gpunn_cross_entropy_attrs attrs{
        .struct_size = 0, .ignore_index = ignored_label(c_), .label_smoothing = static_cast<float>(smoothing)};
    std::vector<ValueId> inputs = {logits_, labels_};
    if (training_ && has_weights(c_.experiment.loss)) {
      inputs.push_back(g_.add_value(kWeights, {DType::f32, {c_.outputs}}, Storage::data));
    }
    const std::vector<ValueId> found = e_.outputs(GPUNN_OP_CROSS_ENTROPY, inputs, Attributes::of(attrs));
    return entropies_.emplace_back(Entropy{smoothing, found[0], found[1], found[2]});
  }

  // sum(loss) / sum(share) of each row, 0 if nothing has a share.
  ValueId weighted_mean(ValueId loss, ValueId share) {
    const ValueId shares = sum_of_row(share), none = e_.constant(0);
    const ValueId counts = e_.less(none, shares);
    return e_.mul(sum_of_row(loss), e_.select(counts, e_.div(counts, shares), none));
  }
  ValueId sum_of_row(ValueId x) { return e_.sum(x, e_.all(x) & ~1U, false); }

  ValueId cross_entropy(double smoothing) {
    const Entropy pixels = entropy(smoothing);
    return weighted_mean(pixels.loss, pixels.share);
  }

  // (1 - p)^gamma times the weighted cross-entropy, with the probability p of the pixel's class (Lin et al., 2017).
  ValueId focal(double gamma) {
    constexpr double kLeastMissing = 1e-20;  // the power's slope is infinite at 0 for gamma below 1
    const Entropy pixels = entropy(0);
    const ValueId none = e_.constant(0);
    ValueId unweighted = pixels.loss;
    if (training_ && has_weights(c_.experiment.loss)) {
      const ValueId counts = e_.less(none, pixels.share);
      unweighted = e_.mul(pixels.loss, e_.select(counts, e_.div(counts, pixels.share), none));
    }
    const ValueId missing = e_.maximum(e_.one_minus_power(std::exp(-1.0), unweighted), e_.constant(kLeastMissing));
    return weighted_mean(e_.mul(e_.pow(missing, e_.constant(gamma)), pixels.loss), pixels.share);
  }

  ValueId dice(double smooth) {
    const Shape shape = e_.shape(logits_), pixel{shape[0], 1, shape[2], shape[3]};
    // The sum of q is 1 but for rounding. No gradient flows through log_sum, and the quotient makes up for it.
    const ValueId q = e_.exp(e_.sub(logits_, e_.view(entropy(0).log_sum, pixel)));
    const ValueId p = e_.div(q, e_.sum(q, 1U << 1));

    const ValueId numbers = e_.view(e_.to_f32(labels_), pixel), no_class = e_.constant(-1);
    const ValueId ignored = e_.equal(numbers, e_.constant(ignored_label(c_)));
    const ValueId labels = e_.select(ignored, no_class, numbers), counts = e_.less(no_class, labels);
    const ValueId t = e_.equal(labels, g_.add_value(kNumbers, {DType::f32, {1, c_.outputs, 1, 1}}, Storage::data));

    const auto of_class = [&](ValueId x) { return e_.sum(x, 1U << 2 | 1U << 3, false); };  // [N,C]
    const ValueId truth = of_class(t), is_there = e_.less(e_.constant(0), truth);
    const ValueId both = e_.add(e_.scaled(of_class(e_.mul(p, t)), 2), e_.constant(smooth));
    const ValueId all = e_.add(e_.add(of_class(e_.mul(p, counts)), truth), e_.constant(smooth));
    const ValueId overlap = e_.div(both, e_.maximum(all, e_.constant(kLeastDivisor)));
    return weighted_mean(e_.mul(is_there, e_.sub(e_.constant(1), overlap)), is_there);
  }

  Graph& g_;
  Expressions e_;
  const TaskContext& c_;
  ValueId logits_, labels_;
  bool training_;
  std::vector<Entropy> entropies_ = {};
};

}  // namespace

int32_t ignored_label(const TaskContext& c) {
  return c.target == nullptr ? -1 : static_cast<int32_t>(c.target->ignored.value_or(-1));
}

ValueId add_loss(Graph& g, const TaskContext& c, ValueId logits, ValueId labels, Phase phase) {
  return PixelLosses(g, c, logits, labels, phase).sum_of(terms_of(c.experiment.loss));
}

std::vector<Table> loss_tables(const TaskContext& c) {
  std::vector<Table> tables;
  if (has_weights(c.experiment.loss)) {
    require_class_weights(c.experiment.loss, c.outputs, c.experiment.data.dataset);
    const std::vector<double>& weights = c.experiment.loss.class_weights()->class_weights;
    tables.push_back({kWeights, {c.outputs}, {weights.begin(), weights.end()}});
  }
  if (terms_of(c.experiment.loss).dice > 0) {
    std::vector<float> numbers(static_cast<std::size_t>(c.outputs));
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    tables.push_back({kNumbers, {1, c.outputs, 1, 1}, std::move(numbers)});
  }
  return tables;
}

}  // namespace gpunn::tasks::pixels
