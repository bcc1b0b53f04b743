#include "ops/comparison.hpp"

#include <gpunn/error.hpp>

#include <cmath>
#include <cstdio>
#include <limits>

namespace gpunn::ops {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The reference as its type can hold it: what is too large for it is infinite.
double representable(double value, DType type) {
  return is_floating(type) && std::isinf(rounded(value, type)) ? rounded(value, type) : value;
}

// The difference in units of the bound. Where infinite neighbours leave no bound, any finite number will do.
double error_of(double reference, double found, double bound, bool spreads) {
  if (spreads && !std::isfinite(found)) return 0;
  if (std::isnan(reference) || std::isnan(found)) return std::isnan(reference) && std::isnan(found) ? 0 : kInfinity;
  if (reference == found) return 0;
  const double difference = std::abs(found - reference);
  if (!std::isfinite(difference)) return kInfinity;
  if (std::isnan(bound)) return 0;
  return bound > 0 ? difference / bound : kInfinity;
}

}  // namespace

std::string index_text(const Shape& shape, std::size_t element) {
  Shape index(shape.size());
  auto rest = static_cast<int64_t>(element);
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = rest % shape[i];
    rest /= shape[i];
  }
  return to_string(index);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

Comparison compare(const ReferenceTensor& reference, const ReferenceTensor& found, const Tolerance& tolerance,
                   const std::string& what) {
  const std::size_t count = reference.values.size();
  if (found.values.size() != count || tolerance.bound.size() != count) {
    throw Error("conformance: " + what + " has " + std::to_string(count) + " reference values, " +
                std::to_string(found.values.size()) + " found and " + std::to_string(tolerance.bound.size()) +
                " tolerances; they must be as many");
  }
  Comparison result;
  for (std::size_t i = 0; i < count; ++i) {
    const double error = error_of(representable(reference.values[i], reference.type.dtype), found.values[i],
                                  tolerance.bound[i], tolerance.spreads);
    if (error > 1) ++result.wrong;
    if (error > result.error) {
      result.error = error;
      result.worst = i;
    }
  }
  if (result.wrong == 0) return result;
  result.detail = what + index_text(reference.type.shape, result.worst) + ": expected " +
                  number_text(reference.values[result.worst]) + ", found " + number_text(found.values[result.worst]) +
                  ", tolerance " + number_text(tolerance.bound[result.worst]) + " (" + std::string(tolerance.reason) +
                  "); " + std::to_string(result.wrong) + " of " + std::to_string(count) + " elements are off";
  return result;
}

}  // namespace gpunn::ops
