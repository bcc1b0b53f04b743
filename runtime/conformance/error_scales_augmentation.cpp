#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "conformance/error_scales.hpp"

namespace gpunn::conformance {

namespace {

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

}  // namespace

// The place that a pixel comes from is a sum of a few products. Inside the image none of them exceeds the image's size;
// outside all is border. A step of one pixel changes the value by at most twice the largest.
std::vector<double> affine_image_scale(const Evaluation& e, std::size_t output) {
  const Shape& x = e.signature.inputs.at(0).shape;
  const double value = std::max(largest(e.inputs.at(0).values), largest(e.inputs.at(2).values));
  const double place = 8 * static_cast<double>(x.at(2) + x.at(3));
  return std::vector<double>(e.reference.at(output).values.size(), (2 * place + 8) * value);
}

// A colour is off by some roundings of itself or of white, of any channel since greys mix them; factors reach 2. Then
// it is multiplied with the channel's scale and the shift is added.
std::vector<double> color_scale(const Evaluation& e, std::size_t output) {
  const Shape& shape = e.signature.inputs.at(0).shape;
  const std::vector<double>&scale = e.inputs.at(2).values, &shift = e.inputs.at(3).values;
  double color = e.signature.attrs.as<gpunn_random_color_attrs>().white;
  for (std::size_t c = 0; c < scale.size(); ++c) {
    color = std::max(color, (largest(e.inputs.at(0).values) + std::abs(shift[c])) / std::abs(scale[c]));
  }
  std::vector<double> result(e.reference.at(output).values.size());
  const auto plane = static_cast<std::size_t>(shape.at(2) * shape.at(3));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t c = i / plane % scale.size();
    result[i] = 32 * color * std::abs(scale[c]) + 2 * std::abs(shift[c]);
  }
  return result;
}

std::vector<double> mix_scale(const Evaluation& e, std::size_t output) {
  std::vector<OracleTensor> inputs = e.inputs;
  for (double& value : inputs.at(0).values) value = std::abs(value);
  std::vector<double> scale = (e.evaluate ? e.evaluate(inputs) : run_oracle(e.signature, inputs)).at(output).values;
  for (double& value : scale) value *= 4;
  return scale;
}

}  // namespace gpunn::conformance
