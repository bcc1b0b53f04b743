#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/error_scales.hpp"

namespace gpunn::conformance {

namespace {

// Roundings of exp or log and what surrounds them; vectorised ones are good to a few units.
constexpr double kLossError = 8;

// Elements of a row of x[N,...].
std::size_t row_size(const OracleTensor& x) {
  return x.values.empty() ? 0 : x.values.size() / static_cast<std::size_t>(x.type.shape.at(0));
}

// A hinge's x[N,C] and labels as an op has them, with its margin.
struct Hinge {
  Hinge(const Evaluation& e, std::size_t x_input)
      : x(e.inputs.at(x_input).values),
        label(e.inputs.at(x_input + 1).values),
        attrs(e.signature.attrs.as<gpunn_hinge_attrs>()),
        classes(static_cast<std::size_t>(e.inputs.at(x_input).type.shape.at(1))) {}

  std::size_t label_at(std::size_t n) const { return n * classes + static_cast<std::size_t>(label[n]); }
  double shortfall(std::size_t n, std::size_t c) const {
    return std::max(0.0, static_cast<double>(attrs.margin) - x[label_at(n)] + x[n * classes + c]);
  }
  // What cancels in a shortfall: its error is of this, whether the class counts or only nearly does.
  double magnitude(std::size_t n, std::size_t c) const {
    return std::abs(static_cast<double>(attrs.margin)) + std::abs(x[label_at(n)]) + std::abs(x[n * classes + c]);
  }

  const std::vector<double>& x;
  const std::vector<double>& label;
  gpunn_hinge_attrs attrs;
  std::size_t classes;
};

}  // namespace

std::vector<double> bce_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& x = e.inputs.at(0).values;
  const std::vector<double>& target = e.inputs.at(1).values;
  const std::size_t size = row_size(e.inputs.at(0));
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t n = 0; n < scale.size(); ++n) {
    double sum = 0;
    for (std::size_t i = n * size; i < (n + 1) * size; ++i) {
      sum += std::max(x[i], 0.0) + std::abs(x[i] * target[i]) + std::log1p(std::exp(-std::abs(x[i])));
    }
    scale[n] = sum / static_cast<double>(size) * (kLossError + accumulation(static_cast<double>(size)));
  }
  return scale;
}

std::vector<double> bce_backward_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& dloss = e.inputs.at(0).values;
  const std::vector<double>& x = e.inputs.at(1).values;
  const std::vector<double>& target = e.inputs.at(2).values;
  const std::size_t size = row_size(e.inputs.at(1));
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const double terms = kLossError / (1 + std::exp(-x[i])) + 5 * std::abs(target[i]);
    scale[i] = std::abs(dloss[i / size]) / static_cast<double>(size) * terms;
  }
  return scale;
}

std::vector<double> hinge_scale(const Evaluation& e, std::size_t output) {
  const Hinge h(e, 0);
  const double sum_error = accumulation(static_cast<double>(h.classes));
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t n = 0; n < scale.size(); ++n) {
    double sum = 0;
    for (std::size_t c = 0; c < h.classes; ++c) {
      const double short_by = h.shortfall(n, c), error = 3 * h.magnitude(n, c);
      // (s + e)^2 = s^2 + 2 s e and e^2, which is of the second order.
      sum += h.attrs.power == 2 ? short_by * short_by * sum_error + 2 * short_by * error + 1e-6 * error * error
                                : short_by * sum_error + error;
    }
    scale[n] = sum / static_cast<double>(h.classes);
  }
  return scale;
}

std::vector<double> hinge_backward_scale(const Evaluation& e, std::size_t output) {
  const Hinge h(e, 1);
  const double sum_error = accumulation(static_cast<double>(h.classes));
  const std::vector<double>& y = e.reference.at(output).values;
  std::vector<double> scale(y.size());
  for (std::size_t n = 0; n < h.label.size(); ++n) {
    const double share = 2 * std::abs(e.inputs.at(0).values[n]) / static_cast<double>(h.classes);
    double sum = 0;  // of the errors of shortfalls; with power 1 slopes have none
    for (std::size_t c = 0; c < h.classes; ++c) {
      const double error = h.attrs.power == 2 ? 3 * share * h.magnitude(n, c) : 0;
      scale[n * h.classes + c] = error + 5 * std::abs(y[n * h.classes + c]);
      sum += error;
    }
    scale[h.label_at(n)] = sum + (5 + sum_error) * std::abs(y[h.label_at(n)]);
  }
  return scale;
}

}  // namespace gpunn::conformance
