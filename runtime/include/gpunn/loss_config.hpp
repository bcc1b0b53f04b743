// The section `loss` of an experiment.
#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace gpunn {

// Losses have a name in experiments, `loss.type`, and their keys as members.

// Factors of the classes in a loss.
struct ClassWeights {
  std::vector<double> class_weights;   // by class; empty: 1 each
  SourceLocation class_weights_place;  // the data says how many there have to be
};

// `loss.type: cross_entropy`
struct CrossEntropy : ClassWeights {
  static constexpr const char* kName = "cross_entropy";
  double label_smoothing = 0;  // the share of a target that is spread over all classes
};

// `loss.type: mean_squared_error`
struct MeanSquaredError {
  static constexpr const char* kName = "mean_squared_error";
};

// `loss.type: binary_cross_entropy`
struct BinaryCrossEntropy {
  static constexpr const char* kName = "binary_cross_entropy";
};

// `loss.type: hinge`
struct Hinge {
  static constexpr const char* kName = "hinge";
  double margin = 1;  // by how much the label's output has to lead
  int64_t power = 1;  // 1 or 2, of what is missing
};

// `loss.type: huber`
struct Huber {
  static constexpr const char* kName = "huber";
  double delta = 1;  // squares up to here, distances beyond
};

// `loss.type: mean_absolute_error`
struct MeanAbsoluteError {
  static constexpr const char* kName = "mean_absolute_error";
};

// sqrt(distance^2 + epsilon^2), an absolute error that is smooth at 0 (Charbonnier et al., 1994).
struct Charbonnier {
  static constexpr const char* kName = "charbonnier";
  double epsilon = 0.001;
};

// How weights expect colours: 0 to 255 minus ImageNet's mean, or 0 to 1 standardised as torchvision does.
enum class FeatureColours { centred, standardised };

// A network whose weights stay as they are, and the layers at which it compares images.
struct FeatureNetwork {
  std::string features = "vgg19";                    // or squeezenet, drawn; a run folder, a checkpoint, an ONNX file
  std::filesystem::path weights;                     // .safetensors; empty: looked for in $GPUNN_DATA_DIR
  FeatureColours colours = FeatureColours::centred;  // of these weights
  std::vector<std::string> content_layers;           // empty: those that the network is known for
};

// Compares an image and its target: the absolute difference of pixels, and the squared one of features (Johnson et al.,
// 2016).
struct Perceptual : FeatureNetwork {
  static constexpr const char* kName = "perceptual";
  double pixel_weight = 1;
  double content_weight = 0.1;
};

// Compares an image with the one that it was made of: its content, in given styles (Johnson et al., 2016).
struct StyleLoss : FeatureNetwork {
  static constexpr const char* kName = "style";
  std::vector<std::filesystem::path> styles;  // pictures; row r of a batch is painted by number r mod their count
  int64_t style_size = 256;                   // pixels that the longer side of these is scaled to; 0: as they are
  std::vector<std::string> style_layers;      // empty: those that the network is known for
  double content_weight = 1;
  double style_weight = 0;  // 0: what the network is known for
  double variation_weight = 0;
};

// Cross-entropy in which certain answers count little (Lin et al., 2017): of each class by itself for boxes, with their
// generalised overlap; of the softmax over the classes for pixels.
struct Focal : ClassWeights {
  static constexpr const char* kName = "focal";
  double alpha = 0.25;  // for boxes: weight of the class that is there
  double gamma = 2;     // power of what is missing
};

// Of anchors: the cross-entropy of the classes, of those without a box only the hardest, and the smooth absolute error
// of the sides (Liu et al., 2016).
struct MultiBox {
  static constexpr const char* kName = "multibox";
  double negatives = 3;  // anchors without a box for each that has one
};

// 1 - (2 sum(p t) + smooth) / (sum(p) + sum(t) + smooth) over the pixels of an image, with the probability p of a class
// and t 1 at its pixels; the mean over the classes that are in the image (Milletari et al., 2016; the sums without
// squares of Drozdzal et al., 2016).
struct Dice {
  static constexpr const char* kName = "dice";
  double smooth = 1;
};

// The sum of losses of pixels, each multiplied by its weight.
struct LossSum : CrossEntropy, Dice {
  static constexpr const char* kName = "sum";
  double gamma = 2;  // of the term focal
  double cross_entropy = 1, dice = 1, focal = 0;
};

// In the order of LossConfig::kind's alternatives.
enum class LossKind {
  cross_entropy,
  mean_squared_error,
  binary_cross_entropy,
  hinge,
  huber,
  mean_absolute_error,
  charbonnier,
  perceptual,
  style,
  focal,
  multibox,
  dice,
  sum
};

// The section `loss` of an experiment. The order of kinds is that of LossKind.
struct LossConfig {
  std::variant<CrossEntropy, MeanSquaredError, BinaryCrossEntropy, Hinge, Huber, MeanAbsoluteError, Charbonnier,
               Perceptual, StyleLoss, Focal, MultiBox, Dice, LossSum>
      kind;

  LossKind type() const { return static_cast<LossKind>(kind.index()); }
  // nullptr if classes have no weights in a loss of this kind.
  const ClassWeights* class_weights() const {
    return std::visit(
        [](const auto& loss) -> const ClassWeights* {
          if constexpr (std::is_base_of_v<ClassWeights, std::decay_t<decltype(loss)>>) return &loss;
          return nullptr;
        },
        kind);
  }
  ClassWeights* class_weights() { return const_cast<ClassWeights*>(std::as_const(*this).class_weights()); }
};

}  // namespace gpunn
