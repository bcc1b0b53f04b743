// The section `loss` of an experiment.
#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <variant>
#include <vector>

namespace gpunn {

struct CrossEntropy {
  double label_smoothing = 0;          // the share of a target that is spread over all classes
  std::vector<double> class_weights;   // by class, of its term of the loss; empty: 1 each
  SourceLocation class_weights_place;  // the data says how many there have to be
};

struct MeanSquaredError {};

struct BinaryCrossEntropy {};

struct Hinge {
  double margin = 1;  // by how much the label's output has to lead
  int64_t power = 1;  // 1 or 2, of what is missing
};

struct Huber {
  double delta = 1;  // squares up to here, distances beyond
};

struct MeanAbsoluteError {};

// sqrt(distance^2 + epsilon^2), an absolute error that is smooth at 0 (Charbonnier et al., 1994).
struct Charbonnier {
  double epsilon = 0.001;
};

// In the order of LossConfig::kind's alternatives.
enum class LossKind {
  cross_entropy,
  mean_squared_error,
  binary_cross_entropy,
  hinge,
  huber,
  mean_absolute_error,
  charbonnier
};

struct LossConfig {
  std::variant<CrossEntropy, MeanSquaredError, BinaryCrossEntropy, Hinge, Huber, MeanAbsoluteError, Charbonnier> kind;

  LossKind type() const { return static_cast<LossKind>(kind.index()); }
};

}  // namespace gpunn
