#include "conformance/error_scales.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

namespace gpunn::conformance {

namespace {

const std::vector<double>& reference(const Evaluation& e, std::size_t output) { return e.reference.at(output).values; }

std::vector<double> magnitudes(const std::vector<double>& values, double factor) {
  std::vector<double> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(), [=](double v) { return factor * std::abs(v); });
  return result;
}

bool is_real(DType type) { return type == DType::f32 || type == DType::f64; }

// The op on absolute values of its real inputs: of a sum of products, the sum of their absolute values.
std::vector<OracleTensor> on_absolute_inputs(const Evaluation& e, std::size_t how_many) {
  std::vector<OracleTensor> inputs = e.inputs;
  for (std::size_t i = 0; i < std::min(how_many, inputs.size()); ++i) {
    if (is_real(inputs[i].type.dtype)) inputs[i].values = magnitudes(inputs[i].values, 1);
  }
  return e.evaluate ? e.evaluate(inputs) : run_oracle(e.signature, inputs);
}

double product(const Shape& shape, std::size_t from) {
  double result = 1;
  for (std::size_t i = from; i < shape.size(); ++i) result *= static_cast<double>(shape[i]);
  return result;
}

// How many terms the longest sum of the op has.
double terms(const Evaluation& e) {
  const graph::OpSignature& s = e.signature;
  const auto shape = [&s](std::size_t i) -> const Shape& { return s.inputs.at(i).shape; };
  switch (s.op) {
    case GPUNN_OP_MATMUL:
    case GPUNN_OP_MATMUL_BIAS_ACTIVATION: {
      const bool transpose_a = s.attrs.as<gpunn_matmul_attrs>().transpose_a != 0;  // first in both structs
      return static_cast<double>(shape(0)[transpose_a ? 0 : 1]) + (s.op == GPUNN_OP_MATMUL ? 0 : 1);
    }
    case GPUNN_OP_BATCH_MATMUL:
      return static_cast<double>(shape(0)[s.attrs.as<gpunn_matmul_attrs>().transpose_a != 0 ? 1 : 2]);
    case GPUNN_OP_SCATTER_ADD:
      return static_cast<double>(shape(0)[0]);
    case GPUNN_OP_CONV2D:
      return product(shape(1), 1);
    case GPUNN_OP_CONV2D_BIAS_ACTIVATION:
      return product(shape(1), 1) + 1;
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
      return product(shape(1), 2) * static_cast<double>(shape(1)[0]) / s.attrs.as<gpunn_conv2d_attrs>().groups;
    case GPUNN_OP_CONV2D_BACKWARD_FILTER:
    case GPUNN_OP_BIAS_BACKWARD:
    case GPUNN_OP_BIAS_ACTIVATION_BACKWARD:
      return static_cast<double>(shape(0)[0]) * product(shape(0), 2);
    case GPUNN_OP_AVG_POOL2D: {
      const auto a = s.attrs.as<gpunn_pool2d_attrs>();
      return static_cast<double>(std::min<int64_t>(a.window[0], shape(0)[2])) *
             static_cast<double>(std::min<int64_t>(a.window[1], shape(0)[3]));
    }
    case GPUNN_OP_AVG_POOL2D_BACKWARD:
    case GPUNN_OP_MAX_POOL2D_BACKWARD: {
      const auto a = s.attrs.as<gpunn_pool2d_attrs>();
      return std::ceil(static_cast<double>(a.window[0]) / a.stride[0]) *
             std::ceil(static_cast<double>(a.window[1]) / a.stride[1]);
    }
    case GPUNN_OP_UPSAMPLE2D:
      return 4;
    case GPUNN_OP_UPSAMPLE2D_BACKWARD: {
      const auto a = s.attrs.as<gpunn_upsample2d_attrs>();
      return 4.0 * a.factor[0] * a.factor[1];
    }
    case GPUNN_OP_REDUCE: {
      double count = 1;
      for (std::size_t i = 0; i < shape(0).size(); ++i) {
        if ((s.attrs.as<gpunn_reduce_attrs>().axes >> i & 1U) != 0) count *= static_cast<double>(shape(0)[i]);
      }
      return count;
    }
    default:
      return product(shape(0), 0);
  }
}

}  // namespace

double accumulation(double terms) { return 4 + 2 * std::sqrt(terms); }

std::vector<double> exact_scale(const Evaluation& e, std::size_t output) {
  return std::vector<double>(reference(e, output).size(), 0.0);
}

std::vector<double> one_rounding_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(reference(e, output), 1.5);
}

std::vector<double> few_roundings_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(reference(e, output), 5);
}

std::vector<double> function_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(reference(e, output), 8);
}

std::vector<double> axpby_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_axpby_attrs>();
  std::vector<double> scale(reference(e, output).size());
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const double sum = std::abs(a.alpha * e.inputs.at(0).values[i]) + std::abs(a.beta * e.inputs.at(1).values[i]);
    scale[i] = std::isfinite(sum) ? 2.5 * sum : 0;  // infinities and NaN are exact
  }
  return scale;
}

std::vector<double> norm_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(reference(e, output), 2 + accumulation(terms(e)) / 2);
}

std::vector<double> affine_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(on_absolute_inputs(e, e.inputs.size()).at(output).values, 2);
}

std::vector<double> sum_scale(const Evaluation& e, std::size_t output) {
  if (e.signature.op == GPUNN_OP_REDUCE && e.signature.attrs.as<gpunn_reduce_attrs>().kind == GPUNN_REDUCE_MAX) {
    return exact_scale(e, output);
  }
  if (e.signature.op == GPUNN_OP_UPSAMPLE2D &&
      e.signature.attrs.as<gpunn_upsample2d_attrs>().mode == GPUNN_UPSAMPLE_NEAREST) {
    return exact_scale(e, output);
  }
  return magnitudes(on_absolute_inputs(e, e.inputs.size()).at(output).values, accumulation(terms(e)));
}

std::vector<double> products_scale(const Evaluation& e, std::size_t output) {
  std::vector<OracleTensor> inputs = e.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool factor = i < 2;
    for (double& value : inputs[i].values) value = factor ? std::abs(value) : 0;
  }
  return (e.evaluate ? e.evaluate(inputs) : run_oracle(e.signature, inputs)).at(output).values;
}

// The inputs behind the first select what is summed and must keep their signs.
std::vector<double> first_input_sum_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(on_absolute_inputs(e, 1).at(output).values, accumulation(terms(e)));
}

// Terms that are not below 0 make the result itself the sum of absolute values.
std::vector<double> squares_scale(const Evaluation& e, std::size_t output) {
  return magnitudes(reference(e, output), accumulation(product(e.signature.inputs.at(0).shape, 1)));
}

std::vector<double> uniform_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_random_attrs>();
  return std::vector<double>(reference(e, output).size(), 3 * (std::abs(a.low) + std::abs(a.high)));
}

// |sin(a + d) - sin(a)| <= d, times the radius: d is the rounding of an angle up to 2 pi, of pi and of sin itself.
std::vector<double> normal_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_random_attrs>();
  constexpr double kLargestRadius = 5.77;  // sqrt(-2 ln 2^-24)
  const double scale = std::abs(a.high) * kLargestRadius * 16 + 2 * std::abs(a.low);
  return std::vector<double>(reference(e, output).size(), scale);
}

std::vector<double> metrics_scale(const Evaluation& e, std::size_t output) {
  std::vector<double> scale(reference(e, output).size(), 0.0);
  double sum = std::abs(e.inputs.at(2).values.at(0));
  const auto count = static_cast<std::size_t>(e.inputs.at(1).values.at(0));
  for (std::size_t i = 0; i < count; ++i) sum += std::abs(e.inputs.at(0).values.at(i));
  scale.at(0) = sum * accumulation(static_cast<double>(count));
  return scale;
}

}  // namespace gpunn::conformance
