#include "training/loss_keys.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "config/key_builders.hpp"
#include "config/kinds.hpp"
#include "tasks/losses.hpp"

namespace gpunn::training {

namespace {

template <class Loss, class... Keys>
config::KindOf<LossConfig> loss_kind(Keys... keys) {
  return config::make_kind<Loss, LossConfig>(tasks::name_of(LossConfig{Loss()}.type()), std::move(keys)...);
}

}  // namespace

std::vector<config::KeyOf<LossConfig>> loss_keys() {
  using namespace config;
  const std::vector<KindOf<LossConfig>> kinds = {
      loss_kind<CrossEntropy>(number("label_smoothing", &CrossEntropy::label_smoothing, between(0, 1),
                                     "The share of each target that is spread evenly over all classes."),
                              optional(numbers("class_weights", &CrossEntropy::class_weights, at_least(0),
                                               "A factor for each class, of its term of the loss. Default: 1 each."))),
      loss_kind<MeanSquaredError>(),
      loss_kind<BinaryCrossEntropy>(),
      loss_kind<Hinge>(
          number("margin", &Hinge::margin, above_up_to(0, kLargestRate),
                 "By how much the output of the row's class has to be above the others."),
          integer("power", &Hinge::power, between(1, 2), "1: what is missing from the margin counts; 2: its square.")),
      loss_kind<Huber>(number("delta", &Huber::delta, above_up_to(0, kLargestRate),
                              "Up to this distance squares count, beyond it distances.")),
      loss_kind<MeanAbsoluteError>(),
      loss_kind<Charbonnier>(number("epsilon", &Charbonnier::epsilon, above_up_to(0, kLargestRate),
                                    "The loss is the square root of distance^2 + epsilon^2.")),
  };
  std::vector<KeyOf<LossConfig>> keys = keys_of_kinds(kinds);
  keys.insert(keys.begin(), kind_key("type", kinds,
                                     "`cross_entropy` takes the model's output before any softmax, "
                                     "`binary_cross_entropy` before any sigmoid."));
  return keys;
}

void check_loss(const LossConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  const CrossEntropy* loss = std::get_if<CrossEntropy>(&config.kind);
  if (loss == nullptr || loss->class_weights.empty()) return;
  if (std::ranges::any_of(loss->class_weights, [](double weight) { return weight != 0; })) return;
  found.add(given.place("loss.class_weights"), "loss.class_weights: expected a number above 0 among them");
}

}  // namespace gpunn::training
