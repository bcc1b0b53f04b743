// Losses of scores with labels that are known at import, as in networks that were exported with their loss.
#include <numeric>
#include <string>
#include <utility>

#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/operands.hpp"

namespace gpunn::interchange {

namespace {

// The labels as factors of the scores [N, C, ...]: minus the weight of its class where the label is, else 0.
struct Factors {
  Constant factors, is_label;
  double sum = 0;  // of the weights of all labels
};

Factors factors_of(Call& call, const Shape& scores) {
  const std::vector<int64_t> labels = call.integers(1, "the labels");
  const int64_t classes = scores[1], inner = element_count(Shape(scores.begin() + 2, scores.end()));
  std::vector<float> weights(static_cast<std::size_t>(classes), 1);
  if (call.has(2)) weights = *as_floats(call.constant(2, "the weights")).floats;
  const bool fits = std::ssize(labels) * classes == element_count(scores) && std::ssize(weights) == classes;
  if (!fits) throw Unsupported("its labels or weights don't fit its scores " + gpunn::to_string(scores));
  const auto count = static_cast<std::size_t>(call.importer().take_room(scores));
  std::vector<float> factors(count, 0), is_label(count, 0);
  double sum = 0;
  for (int64_t i = 0; i < std::ssize(labels); ++i) {
    const int64_t label = labels[static_cast<std::size_t>(i)];
    if (call.has_attribute("ignore_index") && label == call.integer("ignore_index", 0)) continue;
    if (label < -classes || label >= classes) throw Unsupported("a label is " + std::to_string(label));
    const int64_t own = label < 0 ? label + classes : label;
    const auto at = static_cast<std::size_t>(((i / inner) * classes + own) * inner + i % inner);
    const float weight = weights[static_cast<std::size_t>(own)];
    factors[at] = -weight;
    is_label[at] = 1;
    sum += static_cast<double>(weight);
  }
  return {.factors = floats_constant(scores, std::move(factors)),
          .is_label = floats_constant(scores, std::move(is_label)),
          .sum = sum};
}

// Of logarithms of probabilities [N, C, ...].
Value loss_of(Call& call, const Value& logarithms) {
  Shape scores;
  for (const Size& size : logarithms.shape) {
    scores.push_back(size.factor * (size.of_batch ? call.importer().baked_batch() : 1));
  }
  if (scores.size() < 2) throw Unsupported("takes " + to_string(logarithms.shape) + "; expected [N, classes, ...]");
  const Factors labels = factors_of(call, scores);
  const Value terms = choice_of(call, constant_value(labels.is_label),
                                product_of(call, logarithms, constant_value(labels.factors)), number(0));
  const std::string reduction = call.word("reduction", "mean");
  if (reduction == "none") return reduced(call, terms, "sum", {1}, false);
  std::vector<int64_t> all(scores.size());
  std::iota(all.begin(), all.end(), 0);
  Value sum = reduced(call, terms, "sum", all, false);
  if (reduction == "sum") return sum;
  if (reduction != "mean") throw Unsupported("its reduction " + reduction + " is not known");
  return quotient_of(call, sum, number(static_cast<float>(labels.sum)));
}

void negative_log_likelihood(Call& call) { call.give(loss_of(call, call.data_anywhere(0))); }

void softmax_cross_entropy(Call& call) {
  const Value logarithms = softmax_over(call, "log_softmax", call.data_anywhere(0), 1);
  if (call.node().outputs.size() > 1) call.give(1, logarithms);
  call.give(loss_of(call, logarithms));
}

}  // namespace

std::vector<OpRow> loss_rows() {
  return {{"NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
          {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy}};
}

}  // namespace gpunn::interchange
