#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/error_scales.hpp"

namespace gpunn::conformance {

namespace {

// A tensor [N,C,...] as [images][channels][inner]. Its first `counted` images enter the statistics.
struct BatchView {
  std::size_t images, channels, inner, counted;

  double elements() const { return static_cast<double>(counted * inner); }

  // visit(element) for what of channel c is in the images [0, last).
  template <class Visit>
  void for_channel(std::size_t c, std::size_t last, Visit visit) const {
    for (std::size_t n = 0; n < last; ++n) {
      for (std::size_t i = 0; i < inner; ++i) visit((n * channels + c) * inner + i);
    }
  }
};

BatchView batch_of(const Evaluation& e, std::size_t count) {
  const Shape& x = e.inputs.at(0).type.shape;
  BatchView batch{static_cast<std::size_t>(x.at(0)), static_cast<std::size_t>(x.at(1)), 1,
                  static_cast<std::size_t>(x[0])};
  for (std::size_t i = 2; i < x.size(); ++i) batch.inner *= static_cast<std::size_t>(x[i]);
  if (count < e.inputs.size()) {
    batch.counted = static_cast<std::size_t>(std::clamp(e.inputs[count].values.at(0), 0.0, static_cast<double>(x[0])));
  }
  return batch;
}

// What f32 makes of a channel's statistics, in units of roundoff.
struct Statistics {
  double mean_error = 0;      // absolute
  double variance_error = 0;  // absolute
  double variance = 0;        // biased
};

// The mean is a sum. An error d of it adds d^2 to the variance. Otherwise the variance is a sum of squares of
// differences, where nothing cancels: the mean square minus the squared mean would be off by far more.
Statistics statistics_of(const BatchView& batch, const std::vector<double>& x, std::size_t c) {
  double size = 0, sum = 0, squares = 0;
  batch.for_channel(c, batch.counted, [&](std::size_t i) {
    size += std::abs(x[i]);
    sum += x[i];
  });
  const double elements = batch.elements(), mean = sum / elements;
  batch.for_channel(c, batch.counted, [&](std::size_t i) { squares += (x[i] - mean) * (x[i] - mean); });
  Statistics s;
  s.variance = squares / elements;
  s.mean_error = size / elements * accumulation(elements);
  s.variance_error = s.variance * accumulation(elements) + unit_roundoff(DType::f32) * s.mean_error * s.mean_error;
  return s;
}

constexpr double kRoot = 4;  // roundings of the sum with epsilon, of the root and of the quotient

}  // namespace

std::vector<double> batch_norm_scale(const Evaluation& e, std::size_t output) {
  const auto attrs = e.signature.attrs.as<gpunn_batch_norm_attrs>();
  const BatchView batch = batch_of(e, 5);
  const std::vector<double>&x = e.inputs.at(0).values, &gamma = e.inputs.at(1).values, &beta = e.inputs.at(2).values;
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  if (batch.elements() == 0) return scale;  // zeros, and statistics that stay
  for (std::size_t c = 0; c < batch.channels; ++c) {
    const Statistics s = statistics_of(batch, x, c);
    const double rstd = 1 / std::sqrt(s.variance + attrs.epsilon);
    const double rstd_error = rstd * (kRoot + 0.5 * s.variance_error * rstd * rstd);
    const double before = 2 * std::abs((1.0 - attrs.momentum) * e.inputs.at(output < 3 ? 3 : output).values[c]);
    switch (output) {
      case 0: {
        const double mean = e.reference.at(1).values[c];
        batch.for_channel(c, batch.images, [&](std::size_t i) {
          const double from_mean = std::abs(x[i] - mean);
          scale[i] = std::abs(gamma[c]) * (rstd * (s.mean_error + 4 * from_mean) + rstd_error * from_mean) +
                     2 * std::abs(beta[c]);
        });
        break;
      }
      case 1:
        scale[c] = s.mean_error;
        break;
      case 2:
        scale[c] = rstd_error;
        break;
      case 3:
        scale[c] = before + attrs.momentum * s.mean_error;
        break;
      default:
        scale[c] = before + attrs.momentum * 2 * (s.variance_error + 4 * s.variance);
    }
  }
  return scale;
}

// dx = gamma rstd (dy - (sum of dy + h sum of dy h) / m), h = (x - mean) rstd.
std::vector<double> batch_norm_backward_scale(const Evaluation& e, std::size_t output) {
  const BatchView batch = batch_of(e, 5);
  const std::vector<double>&dy = e.inputs.at(0).values, &x = e.inputs.at(1).values, &gamma = e.inputs.at(2).values,
        &mean = e.inputs.at(3).values, &rstd = e.inputs.at(4).values;
  const double elements = batch.elements(), terms = accumulation(elements);
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  for (std::size_t c = 0; c < batch.channels; ++c) {
    const auto h = [&](std::size_t i) { return std::abs((x[i] - mean[c]) * rstd[c]); };
    double size = 0, product = 0;
    batch.for_channel(c, batch.counted, [&](std::size_t i) {
      size += std::abs(dy[i]);
      product += std::abs(dy[i]) * h(i);
    });
    if (output == 1) scale[c] = product * terms;
    if (output == 2) scale[c] = size * terms;
    if (output != 0) continue;
    batch.for_channel(c, batch.counted, [&](std::size_t i) {
      scale[i] =
          std::abs(gamma[c] * rstd[c]) * (4 * std::abs(dy[i]) + (terms + 4) * (size + h(i) * product) / elements);
    });
  }
  return scale;
}

// y = (x - mean) rstd gamma + beta, or x times a factor plus a shift.
std::vector<double> batch_norm_inference_scale(const Evaluation& e, std::size_t output) {
  const double epsilon = e.signature.attrs.as<gpunn_batch_norm_attrs>().epsilon;
  const BatchView batch = batch_of(e, 5);
  const std::vector<double>& x = e.inputs.at(0).values;
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t c = 0; c < batch.channels; ++c) {
    const double factor = e.inputs.at(1).values[c] / std::sqrt(e.inputs.at(4).values[c] + epsilon);
    batch.for_channel(c, batch.images, [&](std::size_t i) {
      scale[i] = (kRoot + 4) * std::abs(factor) * (std::abs(x[i]) + std::abs(e.inputs.at(3).values[c])) +
                 2 * std::abs(e.inputs.at(2).values[c]);
    });
  }
  return scale;
}

namespace {

// The rows of x[N,D] as channels of one image each.
BatchView rows_of(const Evaluation& e, std::size_t x) {
  const Shape& shape = e.inputs.at(x).type.shape;
  return {1, static_cast<std::size_t>(shape.at(0)), static_cast<std::size_t>(shape.at(1)), 1};
}

}  // namespace

std::vector<double> layer_norm_scale(const Evaluation& e, std::size_t output) {
  const double epsilon = e.signature.attrs.as<gpunn_layer_norm_attrs>().epsilon;
  const BatchView rows = rows_of(e, 0);
  const std::vector<double>&x = e.inputs.at(0).values, &gamma = e.inputs.at(1).values, &beta = e.inputs.at(2).values;
  std::vector<double> scale(e.reference.at(output).values.size());
  for (std::size_t n = 0; n < rows.channels; ++n) {
    const Statistics s = statistics_of(rows, x, n);
    const double rstd = 1 / std::sqrt(s.variance + epsilon);
    const double rstd_error = rstd * (kRoot + 0.5 * s.variance_error * rstd * rstd);
    if (output == 1) scale[n] = s.mean_error;
    if (output == 2) scale[n] = rstd_error;
    if (output != 0) continue;
    const double mean = e.reference.at(1).values[n];
    rows.for_channel(n, 1, [&](std::size_t i) {
      const std::size_t d = i - n * rows.inner;
      const double from_mean = std::abs(x[i] - mean);
      scale[i] =
          std::abs(gamma[d]) * (rstd * (s.mean_error + 4 * from_mean) + rstd_error * from_mean) + 2 * std::abs(beta[d]);
    });
  }
  return scale;
}

// dx = rstd (g - (sum of g + h sum of g h) / D), h = (x - mean) rstd and g = dy gamma; dgamma and dbeta are sums
// over the rows.
std::vector<double> layer_norm_backward_scale(const Evaluation& e, std::size_t output) {
  const BatchView rows = rows_of(e, 1);
  const std::vector<double>&dy = e.inputs.at(0).values, &x = e.inputs.at(1).values, &gamma = e.inputs.at(2).values,
        &mean = e.inputs.at(3).values, &rstd = e.inputs.at(4).values;
  const auto columns = static_cast<double>(rows.inner);
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  for (std::size_t n = 0; n < rows.channels; ++n) {
    const auto h = [&](std::size_t i) { return std::abs((x[i] - mean[n]) * rstd[n]); };
    double size = 0, product = 0;
    rows.for_channel(n, 1, [&](std::size_t i) {
      const std::size_t d = i - n * rows.inner;
      size += std::abs(dy[i] * gamma[d]);
      product += std::abs(dy[i] * gamma[d]) * h(i);
      if (output == 1) scale[d] += std::abs(dy[i]) * h(i);
      if (output == 2) scale[d] += std::abs(dy[i]);
    });
    if (output != 0) continue;
    rows.for_channel(n, 1, [&](std::size_t i) {
      const std::size_t d = i - n * rows.inner;
      scale[i] = std::abs(rstd[n]) *
                 (4 * std::abs(dy[i] * gamma[d]) + (accumulation(columns) + 4) * (size + h(i) * product) / columns);
    });
  }
  if (output == 0) return scale;
  for (double& sum : scale) sum *= accumulation(static_cast<double>(rows.channels));
  return scale;
}

}  // namespace gpunn::conformance
