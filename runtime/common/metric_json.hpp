#pragma once

#include <gpunn/metric.hpp>

#include <cmath>
#include <string>

namespace gpunn {

// A metric's value in JSON, which has no infinities: null if it is undefined, "inf" or "-inf", else the number.
template <class Json>
Json metric_json(double value) {
  if (!is_defined(value)) return nullptr;
  return std::isinf(value) ? Json(value > 0 ? "inf" : "-inf") : Json(value);
}

// The inverse. Anything else is undefined.
template <class Json>
double metric_of_json(const Json& json) {
  if (json.is_number()) return json.template get<double>();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  return json == "-inf" ? -std::numeric_limits<double>::infinity() : kUndefined;
}

}  // namespace gpunn
