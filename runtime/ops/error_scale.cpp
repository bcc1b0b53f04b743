#include "ops/error_scale.hpp"

#include <algorithm>
#include <cmath>

#include "ops/reference.hpp"

namespace gpunn::ops {

namespace {

const std::vector<double>& reference_values(const Evaluation& e, std::size_t output) {
  return e.reference.at(output).values;
}

// The op on absolute values of its real inputs: of a sum of products, the sum of their absolute values.
std::vector<ReferenceTensor> on_absolute_inputs(const Evaluation& e, std::size_t how_many) {
  std::vector<ReferenceTensor> inputs = e.inputs;
  for (std::size_t i = 0; i < std::min(how_many, inputs.size()); ++i) {
    if (is_floating(inputs[i].type.dtype)) inputs[i].values = magnitudes(inputs[i].values, 1);
  }
  return e.on(inputs);
}

}  // namespace

std::vector<ReferenceTensor> Evaluation::on(const std::vector<ReferenceTensor>& other_inputs) const {
  return evaluate ? evaluate(other_inputs) : run_reference(signature, other_inputs);
}

std::vector<double> magnitudes(const std::vector<double>& values, double factor) {
  std::vector<double> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(), [=](double v) { return factor * std::abs(v); });
  return result;
}

double accumulation(double terms) { return 4 + 2 * std::sqrt(terms); }

double unit_roundoff(DType type) {
  switch (type) {
    case DType::f32:
      return std::ldexp(1.0, -24);
    case DType::bf16:
      return std::ldexp(1.0, -8);
    case DType::f16:
      return std::ldexp(1.0, -11);
    case DType::f64:
      return std::ldexp(1.0, -53);
    case DType::i32:
    case DType::i64:
    case DType::u8:
      return 0;
  }
  return 0;
}

double sizes_from(const Shape& shape, std::size_t dimension) {
  double result = 1;
  for (std::size_t i = dimension; i < shape.size(); ++i) result *= static_cast<double>(shape[i]);
  return result;
}

double all_terms(const graph::OpSignature& signature) { return sizes_from(signature.inputs.at(0).shape, 0); }

std::vector<double> exact_scale(const Evaluation& e, std::size_t output) {
  return std::vector<double>(reference_values(e, output).size(), 0.0);
}

std::vector<double> one_rounding_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(reference_values(e, output), 1.5);
}

std::vector<double> few_roundings_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(reference_values(e, output), 5);
}

std::vector<double> function_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(reference_values(e, output), 8);
}

std::vector<double> affine_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(on_absolute_inputs(e, e.inputs.size()).at(output).values, 2);
}

std::vector<double> squares_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(reference_values(e, output), accumulation(sizes_from(e.signature.inputs.at(0).shape, 1)));
}

std::size_t columns(const TensorType& type) { return static_cast<std::size_t>(type.shape.at(1)); }

double row_maximum(const std::vector<double>& x, std::size_t first, std::size_t columns) {
  const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first);
  return *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(columns));
}

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
                     : kFunctionError + 2 * distance + 2 * result + accumulation(static_cast<double>(columns(type)));
    }
  });
  return scale;
}

ErrorScale sum_scale(TermCount terms) {
  return [terms](const Evaluation& e, std::size_t output) {
    return magnitudes(on_absolute_inputs(e, e.inputs.size()).at(output).values, accumulation(terms(e.signature)));
  };
}

ErrorScale first_input_sum_scale(TermCount terms) {
  return [terms](const Evaluation& e, std::size_t output) {
    return magnitudes(on_absolute_inputs(e, 1).at(output).values, accumulation(terms(e.signature)));
  };
}

std::vector<double> products_scale(const Evaluation& e, std::size_t output) {
  std::vector<ReferenceTensor> inputs = e.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool factor = i < 2;
    for (double& value : inputs[i].values) value = factor ? std::abs(value) : 0;
  }
  return e.on(inputs).at(output).values;
}

// The mean is a sum. An error d of it adds d^2 to the variance, which otherwise is a sum of squares of differences,
// none of which cancels any more: a variance formed as the mean square minus the squared mean would be off by far more.
StatisticsError statistics_error(const ChannelView& view, const std::vector<double>& x, std::size_t c) {
  double size = 0, sum = 0, squares = 0;
  view.for_channel(c, view.counted, [&](std::size_t i) {
    size += std::abs(x[i]);
    sum += x[i];
  });
  const double elements = view.elements(), mean = sum / elements;
  view.for_channel(c, view.counted, [&](std::size_t i) { squares += (x[i] - mean) * (x[i] - mean); });
  StatisticsError s;
  s.variance = squares / elements;
  s.mean_error = size / elements * accumulation(elements);
  s.variance_error = s.variance * accumulation(elements) + unit_roundoff(DType::f32) * s.mean_error * s.mean_error;
  return s;
}

std::vector<double> normalization_scale(const Evaluation& e, std::size_t output, const ChannelView& groups,
                                        double epsilon, const std::function<std::size_t(std::size_t element)>& affine) {
  const std::vector<double>&x = e.inputs.at(0).values, &gamma = e.inputs.at(1).values, &beta = e.inputs.at(2).values;
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t group = 0; group < groups.channels; ++group) {
    const StatisticsError s = groups.inner == 0 ? StatisticsError{} : statistics_error(groups, x, group);
    const double rstd = 1 / std::sqrt(s.variance + epsilon);
    const double rstd_error = rstd * (kRootError + 0.5 * s.variance_error * rstd * rstd);
    if (output == 1) scale[group] = s.mean_error;
    if (output == 2) scale[group] = rstd_error;
    if (output != 0) continue;
    const double mean = e.reference.at(1).values[group];
    groups.for_channel(group, 1, [&](std::size_t i) {
      const std::size_t c = affine(i);
      const double from_mean = std::abs(x[i] - mean);
      scale[i] =
          std::abs(gamma[c]) * (rstd * (s.mean_error + 4 * from_mean) + rstd_error * from_mean) + 2 * std::abs(beta[c]);
    });
  }
  return scale;
}

}  // namespace gpunn::ops
