#include "tasks/loss_keys.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>

#include "config/key_builders.hpp"
#include "config/kinds.hpp"
#include "tasks/losses.hpp"

namespace gpunn::tasks {

namespace {

constexpr double kMostWeight = 1e12, kMostSide = 16384;

template <class Loss, class... Keys>
config::KindOf<LossConfig> loss_kind(Keys... keys) {
  return config::make_kind<Loss, LossConfig>(Loss::kName, std::move(keys)...);
}

template <class Loss>
config::KeyOf<Loss> class_weights_key() {
  return config::optional(
      config::numbers("class_weights", static_cast<std::vector<double> Loss::*>(&Loss::class_weights),
                      config::at_least(0), "A factor for each class, of its term of the loss. Default: 1 each."));
}

template <class Loss>
config::KeyOf<Loss> label_smoothing_key() {
  return config::number("label_smoothing", static_cast<double Loss::*>(&Loss::label_smoothing), config::between(0, 1),
                        "The share of each target that is spread evenly over all classes.");
}

template <class Loss>
config::KeyOf<Loss> focus_key() {
  return config::number(
      "gamma", &Loss::gamma, config::between(0, config::kLargestRate),
      "Power of 1 - p that multiplies the cross-entropy, with p the probability of the right answer.");
}

template <class Loss>
config::KeyOf<Loss> smooth_key() {
  return config::number("smooth", static_cast<double Loss::*>(&Loss::smooth), config::between(0, kMostWeight),
                        "A number that dice adds to both sides of its quotient, so that few pixels change it less.");
}

// The keys of a network of features, for a kind that has one.
template <class Loss>
std::vector<config::KeyOf<Loss>> feature_keys() {
  using namespace config;
  return {
      text("features", static_cast<std::string Loss::*>(&Loss::features),
           "The network that compares images: `vgg19` or `squeezenet`, whose weights are a file, or `drawn`, which "
           "needs none; or a run folder, a checkpoint or an ONNX file."),
      optional(path("weights", static_cast<std::filesystem::path Loss::*>(&Loss::weights),
                    "Weights of `vgg19` or `squeezenet`, a .safetensors file with torchvision's names. Default: looked "
                    "for in `GPUNN_DATA_DIR` and its folder `weights`.")),
      choice("colours", static_cast<FeatureColours Loss::*>(&Loss::colours), {"centred", "standardised"},
             "How these weights expect colours: 0 to 255 less ImageNet's mean, or 0 to 1 standardised as torchvision "
             "does."),
      optional(texts("content_layers", static_cast<std::vector<std::string> Loss::*>(&Loss::content_layers),
                     "The layers at which the content of images is compared. Default: the network's own.")),
      number("content_weight", &Loss::content_weight, between(0, kMostWeight),
             "Weight of the squared difference of features, the mean of the layers; 0.1 of perceptual where it is not "
             "given.")};
}

std::vector<config::KeyOf<StyleLoss>> style_keys() {
  using namespace config;
  std::vector<KeyOf<StyleLoss>> keys = feature_keys<StyleLoss>();
  for (KeyOf<StyleLoss>& key : std::vector{
           optional(paths("styles", &StyleLoss::styles,
                          "The pictures whose styles are learnt, in turn by the rows of a batch. Default: one that the "
                          "program draws.")),
           integer("style_size", &StyleLoss::style_size, between(0, kMostSide),
                   "Pixels that the longer side of the pictures of styles is scaled to; 0: as they are."),
           optional(texts("style_layers", &StyleLoss::style_layers,
                          "The layers at which styles are compared. Default: the network's own.")),
           number(
               "style_weight", &StyleLoss::style_weight, between(0, kMostWeight),
               "Weight of the squared difference of Gram matrices, the sum of the layers; 0: what the network is known "
               "for."),
           number("variation_weight", &StyleLoss::variation_weight, between(0, kMostWeight),
                  "Weight of the squared difference of neighbouring pixels, down and across.")}) {
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<config::KeyOf<Perceptual>> perceptual_keys() {
  using namespace config;
  std::vector<KeyOf<Perceptual>> keys = feature_keys<Perceptual>();
  keys.push_back(number("pixel_weight", &Perceptual::pixel_weight, between(0, kMostWeight),
                        "Weight of the absolute difference of pixels."));
  return keys;
}

template <class Loss>
config::KindOf<LossConfig> kind_of_keys(std::vector<config::KeyOf<Loss>> keys) {
  config::KindOf<LossConfig> kind = loss_kind<Loss>();
  for (config::KeyOf<Loss>& key : keys) kind.keys.push_back(config::in_kind<Loss, LossConfig>(std::move(key)));
  return kind;
}

}  // namespace

std::vector<config::KeyOf<LossConfig>> loss_keys() {
  using namespace config;
  const std::vector<KindOf<LossConfig>> kinds = {
      loss_kind<CrossEntropy>(label_smoothing_key<CrossEntropy>(), class_weights_key<CrossEntropy>()),
      loss_kind<MeanSquaredError>(),
      loss_kind<BinaryCrossEntropy>(),
      loss_kind<Hinge>(
          number("margin", &Hinge::margin, above_up_to(0, kLargestRate),
                 "By how much the output of the row's class has to be above the others."),
          integer("power", &Hinge::power, between(1, 2), "1: the missing part of the margin; 2: its square.")),
      loss_kind<Huber>(number("delta", &Huber::delta, above_up_to(0, kLargestRate),
                              "The loss is quadratic up to this distance, and linear beyond it.")),
      loss_kind<MeanAbsoluteError>(),
      loss_kind<Charbonnier>(number("epsilon", &Charbonnier::epsilon, above_up_to(0, kLargestRate),
                                    "The loss is the square root of distance^2 + epsilon^2.")),
      kind_of_keys(perceptual_keys()),
      kind_of_keys(style_keys()),
      loss_kind<Focal>(number("alpha", &Focal::alpha, between(0, 1),
                              "Of boxes: weight of the true class; the others have 1 minus this weight."),
                       focus_key<Focal>(), class_weights_key<Focal>()),
      loss_kind<MultiBox>(number("negatives", &MultiBox::negatives, between(0, kLargestRate),
                                 "Number of anchors without a box, the hardest ones, for each anchor with a box.")),
      loss_kind<Dice>(smooth_key<Dice>()),
      loss_kind<LossSum>(
          number("cross_entropy", &LossSum::cross_entropy, between(0, kMostWeight),
                 "Weight of the cross-entropy in the sum."),
          number("dice", &LossSum::dice, between(0, kMostWeight), "Weight of dice in the sum."),
          number("focal", &LossSum::focal, between(0, kMostWeight), "Weight of the focal loss in the sum."),
          label_smoothing_key<LossSum>(), class_weights_key<LossSum>(), focus_key<LossSum>(), smooth_key<LossSum>()),
  };
  std::vector<KeyOf<LossConfig>> keys = keys_of_kinds(kinds);
  keys.insert(keys.begin(), kind_key("type", kinds,
                                     "`cross_entropy` takes the model's output before any softmax, "
                                     "`binary_cross_entropy` before any sigmoid."));
  return keys;
}

void check_loss(const LossConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  const auto is_weight = [](double weight) { return weight != 0; };
  const ClassWeights* const weights = config.class_weights();
  if (weights != nullptr && !weights->class_weights.empty() &&
      std::ranges::none_of(weights->class_weights, is_weight)) {
    found.add(given.place("loss.class_weights"), "loss.class_weights: expected a number above 0 among them");
  }
  const LossSum* const sum = std::get_if<LossSum>(&config.kind);
  if (sum != nullptr && sum->cross_entropy + sum->dice + sum->focal == 0) {
    found.add(given.place("loss.type"),
              "loss: expected a weight above 0 among loss.cross_entropy, loss.dice and loss.focal");
  }
}

}  // namespace gpunn::tasks
