#include <gpunn/ops.h>

#include <cmath>

#include "conformance/error_scales.hpp"

namespace gpunn::conformance {

namespace {

// Roundings of one weight's step, each in units of the larger of what it adds up.
constexpr double kStep = 8;

// What an optimizer reads of element i, as absolute values.
struct Element {
  double w, g, decay;
  double gradient() const { return g + decay * w; }  // |g| + weight decay |w|: before anything cancels
};

Element element(const Evaluation& e, std::size_t i, float weight_decay, int64_t decayed) {
  return {std::abs(e.inputs.at(0).values[i]), std::abs(e.inputs.at(1).values[i]),
          static_cast<int64_t>(i) < decayed ? weight_decay : 0.0};
}

double magnitude(const Evaluation& e, std::size_t input, std::size_t i) {
  return std::abs(e.inputs.at(input).values[i]);
}

double rate(const Evaluation& e) { return std::abs(e.inputs.at(2).values.at(0)); }

}  // namespace

std::vector<double> sgd_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_sgd_attrs>();
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const Element x = element(e, i, a.weight_decay, a.decayed);
    const double velocity = a.momentum != 0 ? a.momentum * magnitude(e, 3, i) + x.gradient() : 0;
    const double step = a.momentum == 0   ? x.gradient()
                        : a.nesterov != 0 ? x.gradient() + a.momentum * velocity
                                          : velocity;
    scale[i] = output == 1 ? 4 * velocity : 1.5 * std::abs(e.reference[0].values[i]) + kStep * rate(e) * step;
  }
  return scale;
}

std::vector<double> adam_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_adam_attrs>();
  const double t = e.inputs.at(3).values.at(0) + 1;
  const double first = 1 - std::pow(static_cast<double>(a.beta1), t);
  const double second = 1 - std::pow(static_cast<double>(a.beta2), t);
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const Element x = element(e, i, a.weight_decay, a.decayed);
    const double g = a.decoupled != 0 ? x.g : x.gradient();
    const double m = a.beta1 * magnitude(e, 4, i) + (1 - a.beta1) * g;
    // g'^2 is off by 2 |g'| times the error of g', which cancellation may leave as large as g.
    const double v = a.beta2 * magnitude(e, 5, i) + (1 - a.beta2) * g * g;
    const double root = std::sqrt(e.reference[2].values[i] / second) + a.epsilon;
    const double shrink = a.decoupled != 0 ? x.w * (1 + rate(e) * x.decay) : std::abs(e.reference[0].values[i]);
    const double w = 3 * shrink + kStep * rate(e) * m / first / root;
    scale[i] = output == 0 ? w : output == 1 ? 4 * m : 6 * v;
  }
  return scale;
}

std::vector<double> rmsprop_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_rmsprop_attrs>();
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const Element x = element(e, i, a.weight_decay, a.decayed);
    const double square = a.alpha * magnitude(e, 3, i) + (1 - a.alpha) * x.gradient() * x.gradient();
    double step = x.gradient() / (std::sqrt(e.reference[1].values[i]) + a.epsilon);
    if (a.momentum != 0) step += a.momentum * magnitude(e, 4, i);
    const double w = 1.5 * std::abs(e.reference[0].values[i]) + kStep * rate(e) * step;
    scale[i] = output == 0 ? w : output == 1 ? 6 * square : kStep * step;
  }
  return scale;
}

}  // namespace gpunn::conformance
