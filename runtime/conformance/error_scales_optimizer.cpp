#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/error_scales.hpp"

namespace gpunn::conformance {

namespace {

// Roundings of one weight's step, each in units of the larger of what it adds up.
constexpr double kStepError = 8;

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

double norm_of(const Evaluation& e, std::size_t input, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += magnitude(e, input, i) * magnitude(e, input, i);
  return std::sqrt(sum);
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
    scale[i] = output == 1 ? 4 * velocity : 1.5 * std::abs(e.reference[0].values[i]) + kStepError * rate(e) * step;
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
    const double w = 3 * shrink + kStepError * rate(e) * m / first / root;
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
    const double w = 1.5 * std::abs(e.reference[0].values[i]) + kStepError * rate(e) * step;
    scale[i] = output == 0 ? w : output == 1 ? 6 * square : kStepError * step;
  }
  return scale;
}

std::vector<double> adagrad_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_adagrad_attrs>();
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const Element x = element(e, i, a.weight_decay, a.decayed);
    const double sum = magnitude(e, 3, i) + x.gradient() * x.gradient();
    const double step = x.gradient() / (std::sqrt(e.reference[1].values[i]) + a.epsilon);
    scale[i] = output == 0 ? 1.5 * std::abs(e.reference[0].values[i]) + kStepError * rate(e) * step : 6 * sum;
  }
  return scale;
}

// Where the two terms cancel to less than their roundings, any sign is right: as much as from -1 to 1.
std::vector<double> lion_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_lion_attrs>();
  const double roundoff = unit_roundoff(DType::f32);
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const Element x = element(e, i, a.weight_decay, a.decayed);
    if (output == 1) {
      scale[i] = 4 * (a.beta2 * magnitude(e, 3, i) + (1 - a.beta2) * x.g);
      continue;
    }
    const double m = e.inputs.at(3).values[i], g = e.inputs.at(1).values[i];
    const double rounding = 4 * roundoff * (a.beta1 * std::abs(m) + (1 - a.beta1) * x.g);
    const bool undecided = std::abs(a.beta1 * m + (1 - a.beta1) * g) < rounding;
    scale[i] = 3 * x.w * (1 + rate(e) * x.decay) + 2 * rate(e) + (undecided ? 2 * rate(e) / roundoff : 0);
  }
  return scale;
}

// A norm may be summed in f32, in any order.
std::vector<double> lars_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_lars_attrs>();
  const std::vector<double>& offset = e.inputs.at(4).values;
  const std::vector<double>& velocity = e.inputs.at(3).values;
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  const auto place = [&](std::size_t i) {
    return static_cast<std::size_t>(std::clamp(offset[i], 0.0, static_cast<double>(scale.size())));
  };
  for (std::size_t part = 0; part + 1 < offset.size(); ++part) {
    const std::size_t begin = place(part), end = place(part + 1);
    const double sums = begin < end ? 2 * accumulation(static_cast<double>(end - begin)) : 0;
    const double w_norm = norm_of(e, 0, begin, end), g_norm = norm_of(e, 1, begin, end);
    const bool adapted = static_cast<int64_t>(begin) < a.decayed && w_norm != 0 && g_norm != 0;
    const double part_rate =
        rate(e) * (adapted ? a.trust * w_norm / (g_norm + a.weight_decay * w_norm + a.epsilon) : 1.0);
    for (std::size_t i = begin; i < end; ++i) {
      const Element x = element(e, i, a.weight_decay, a.decayed);
      const double step = 2 * a.momentum * std::abs(velocity[i]) + (kStepError + sums) * part_rate * x.gradient();
      scale[i] = step + (output == 0 ? 1.5 * std::abs(e.reference[0].values[i]) : 0);
    }
  }
  return scale;
}

}  // namespace gpunn::conformance
