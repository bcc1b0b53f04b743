#pragma once

#include <cmath>

namespace conformance_test {

inline bool near(double a, double b, double tolerance = 1e-9) {
  return std::isnan(a) || std::isnan(b) ? std::isnan(a) && std::isnan(b) : std::abs(a - b) <= tolerance;
}

}  // namespace conformance_test
