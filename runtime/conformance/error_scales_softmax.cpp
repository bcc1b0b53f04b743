#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/error_scales.hpp"

namespace gpunn::conformance {

namespace {

// The tensors of these ops are [N,C]; visit(first element of the row).
template <class Visit>
void for_each_row(const TensorType& type, Visit visit) {
  for (int64_t n = 0; n < type.shape.at(0); ++n) visit(static_cast<std::size_t>(n * type.shape.at(1)));
}

std::size_t columns(const TensorType& type) { return static_cast<std::size_t>(type.shape.at(1)); }

// Roundings of exp or log and what surrounds them; vectorised ones are good to a few units.
constexpr double kSoftmaxError = 8;

double row_maximum(const std::vector<double>& x, std::size_t row, std::size_t classes) {
  return *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(row),
                           x.begin() + static_cast<std::ptrdiff_t>(row + classes));
}

}  // namespace

// y = exp(d) / sum with d = x - max: d is off by |d| units, so y by |d| |y| units; the terms of the sum are positive.
std::vector<double> softmax_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& x = e.inputs.at(0).values;
  const std::vector<double>& y = e.reference.at(output).values;
  const TensorType& type = e.inputs.at(0).type;
  std::vector<double> scale(y.size());
  for_each_row(type, [&](std::size_t row) {
    const double largest = row_maximum(x, row, columns(type));
    for (std::size_t i = row; i < row + columns(type); ++i) {
      const double distance = y[i] == 0 ? 0 : largest - x[i];
      scale[i] = y[i] * (kSoftmaxError + distance + accumulation(static_cast<double>(columns(type))));
    }
  });
  return scale;
}

// dx = y (dy - sum of dy y).
std::vector<double> softmax_backward_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& dy = e.inputs.at(0).values;
  const std::vector<double>& y = e.inputs.at(1).values;
  const TensorType& type = e.inputs.at(1).type;
  std::vector<double> scale(e.reference.at(output).values.size());
  for_each_row(type, [&](std::size_t row) {
    double sum = 0;
    for (std::size_t i = row; i < row + columns(type); ++i) sum += std::abs(dy[i] * y[i]);
    for (std::size_t i = row; i < row + columns(type); ++i) {
      scale[i] = y[i] * (4 * std::abs(dy[i]) + sum * accumulation(static_cast<double>(columns(type))));
    }
  });
  return scale;
}

// y = d - log(sum of exp(d)): the logarithm is off by the relative error of its argument.
std::vector<double> log_softmax_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& x = e.inputs.at(0).values;
  const std::vector<double>& y = e.reference.at(output).values;
  const TensorType& type = e.inputs.at(0).type;
  std::vector<double> scale(y.size());
  for_each_row(type, [&](std::size_t row) {
    const double largest = row_maximum(x, row, columns(type));
    for (std::size_t i = row; i < row + columns(type); ++i) {
      const double distance = std::isfinite(x[i]) ? largest - x[i] : 0;
      const double result = std::isfinite(y[i]) ? std::abs(y[i]) : 0;
      // A single class has the exact result 0, an infinite distance an infinite one.
      scale[i] = columns(type) == 1
                     ? 0
                     : kSoftmaxError + 2 * distance + 2 * result + accumulation(static_cast<double>(columns(type)));
    }
  });
  return scale;
}

// dx = dy - exp(y) (sum of dy).
std::vector<double> log_softmax_backward_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& dy = e.inputs.at(0).values;
  const std::vector<double>& y = e.inputs.at(1).values;
  const TensorType& type = e.inputs.at(1).type;
  std::vector<double> scale(e.reference.at(output).values.size());
  for_each_row(type, [&](std::size_t row) {
    double sum = 0;
    for (std::size_t i = row; i < row + columns(type); ++i) sum += std::abs(dy[i]);
    for (std::size_t i = row; i < row + columns(type); ++i) {
      scale[i] = 2 * std::abs(dy[i]) +
                 std::exp(y[i]) * sum * (kSoftmaxError + accumulation(static_cast<double>(columns(type))));
    }
  });
  return scale;
}

std::vector<double> cross_entropy_scale(const Evaluation& e, std::size_t output) {
  std::vector<double> of_logp = log_softmax_scale(e, 1);
  if (output == 1) return of_logp;
  const TensorType& type = e.inputs.at(0).type;
  std::vector<double> scale;
  for_each_row(type, [&](std::size_t row) {
    const auto label = static_cast<std::size_t>(e.inputs.at(1).values.at(scale.size()));
    scale.push_back(of_logp[row + label]);
  });
  return scale;
}

// dx = dloss (exp(logp) - onehot).
std::vector<double> cross_entropy_backward_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& dloss = e.inputs.at(0).values;
  const std::vector<double>& logp = e.inputs.at(1).values;
  const TensorType& type = e.inputs.at(1).type;
  std::vector<double> scale(e.reference.at(output).values.size());
  std::size_t n = 0;
  for_each_row(type, [&](std::size_t row) {
    const auto label = static_cast<std::size_t>(e.inputs.at(2).values.at(n));
    for (std::size_t i = row; i < row + columns(type); ++i) {
      const double one_hot = i == row + label ? 1 : 0;
      scale[i] = std::abs(dloss[n]) * kSoftmaxError * (std::exp(logp[i]) + one_hot);
    }
    ++n;
  });
  return scale;
}

// loss = -(sum of target logp): each term is off by the error of its logp, and what the sum rounds.
std::vector<double> soft_cross_entropy_scale(const Evaluation& e, std::size_t output) {
  std::vector<double> of_logp = log_softmax_scale(e, 1);
  if (output == 1) return of_logp;
  const std::vector<double>& target = e.inputs.at(1).values;
  const std::vector<double>& logp = e.reference.at(1).values;
  const TensorType& type = e.inputs.at(0).type;
  std::vector<double> scale;
  for_each_row(type, [&](std::size_t row) {
    double sum = 0;
    for (std::size_t i = row; i < row + columns(type); ++i) {
      if (target[i] == 0) continue;
      sum += std::abs(target[i]) * (of_logp[i] + std::abs(logp[i]) * accumulation(static_cast<double>(columns(type))));
    }
    scale.push_back(sum);
  });
  return scale;
}

// dx = dloss (exp(logp) (sum of target) - target).
std::vector<double> soft_cross_entropy_backward_scale(const Evaluation& e, std::size_t output) {
  const std::vector<double>& dloss = e.inputs.at(0).values;
  const std::vector<double>& logp = e.inputs.at(1).values;
  const std::vector<double>& target = e.inputs.at(2).values;
  const TensorType& type = e.inputs.at(1).type;
  std::vector<double> scale(e.reference.at(output).values.size());
  std::size_t n = 0;
  for_each_row(type, [&](std::size_t row) {
    double sum = 0;
    for (std::size_t i = row; i < row + columns(type); ++i) sum += std::abs(target[i]);
    for (std::size_t i = row; i < row + columns(type); ++i) {
      scale[i] = std::abs(dloss[n]) *
                 (std::exp(logp[i]) * sum * (kSoftmaxError + accumulation(static_cast<double>(columns(type)))) +
                  4 * std::abs(target[i]));
    }
    ++n;
  });
  return scale;
}

}  // namespace gpunn::conformance
