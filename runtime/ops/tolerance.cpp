#include "ops/tolerance.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "ops/op.hpp"

namespace gpunn::ops {

namespace {

// Two factors, each rounded or cut off to the precision, are off by at most 2 units of roundoff each, and the sums stay
// f32. (Rounding to nearest stays below half of that; tensor cores that read f32 as it is cut off.)
void add_products(const Evaluation& evaluation, std::size_t output, std::vector<double>& bound) {
  const double unit = product_roundoff(evaluation.precision);
  const std::vector<double> sum = products_scale(evaluation, output);
  for (std::size_t i = 0; i < bound.size(); ++i) bound[i] += (4 * unit + 4 * unit * unit) * sum[i];
}

// What is stored in half precision is computed in f32 and rounded once, as the reference is where an op is exact.
void add_last_rounding(const ReferenceTensor& reference, std::vector<double>& bound) {
  const double roundoff = unit_roundoff(reference.type.dtype);
  // Half a step between subnormal numbers; those of bf16 are below f32's smallest normal one.
  const double least = reference.type.dtype == DType::f16 ? std::ldexp(1.0, -25) : 0;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const double value = reference.values[i];
    if (bound[i] > 0) {
      bound[i] += std::max(least, roundoff * (std::abs(value) + bound[i]));
    } else if (std::isfinite(value)) {
      bound[i] = std::abs(rounded(value, reference.type.dtype) - value);
    }
  }
}

bool all_finite(const std::vector<ReferenceTensor>& tensors) {
  return std::ranges::all_of(tensors, [](const ReferenceTensor& tensor) {
    return std::ranges::all_of(tensor.values, [](double value) { return std::isfinite(value); });
  });
}

}  // namespace

double product_roundoff(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return unit_roundoff(DType::f32);
    case Precision::tf32:
    case Precision::f16:
      return std::ldexp(1.0, -11);  // 10 bits behind the point
    case Precision::bf16:
      return unit_roundoff(DType::bf16);
  }
  return 0;
}

Tolerance tolerance_of(const Evaluation& evaluation, std::size_t output) {
  const OpInfo& info = op_info(evaluation.signature.op);
  if (info.tolerance.empty()) throw Error("there is no tolerance for " + std::string(info.name));
  const ToleranceRow& row = info.tolerance[std::min(output, info.tolerance.size() - 1)];
  const ReferenceTensor& reference = evaluation.reference.at(output);
  const DType type = reference.type.dtype;
  const double roundoff = unit_roundoff(is_half(type) ? DType::f32 : type);
  // Numbers below the smallest normal one may be flushed to zero, as GPUs and vectorised code do.
  const double smallest = type == DType::f32 || is_half(type) ? std::numeric_limits<float>::min() : 0;
  Tolerance tolerance{row.scale(evaluation, output), row.reason, row.multiplies && !all_finite(evaluation.inputs)};
  for (double& bound : tolerance.bound) bound = roundoff * bound + (bound > 0 ? smallest : 0);
  // An op without inputs, as FILL, multiplies nothing.
  const bool factors_are_rounded = row.multiplies && !row.has_precision && evaluation.precision != Precision::fp32;
  if (factors_are_rounded && !is_half(evaluation.inputs.at(0).type.dtype)) {
    add_products(evaluation, output, tolerance.bound);
  }
  if (is_half(type)) add_last_rounding(reference, tolerance.bound);
  return tolerance;
}

}  // namespace gpunn::ops
