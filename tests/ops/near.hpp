#pragma once

#include <cmath>

namespace ops_test {

inline bool near(double a, double b, double tolerance = 1e-9) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= tolerance;  // equal infinities have no difference
}

}  // namespace ops_test
