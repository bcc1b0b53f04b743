#include "optim/schedule/curve.hpp"

#include <algorithm>
#include <cmath>

namespace gpunn::training {

double nearly_whole(double ticks) {
  const double whole = std::round(ticks);
  return std::abs(ticks - whole) <= 1e-9 * std::max(std::abs(whole), 1.0) ? whole : ticks;
}

double Curve::ticks(double configured) const { return nearly_whole(configured * unit); }

double Curve::period(double configured) const { return std::max(ticks(configured), kShortestPeriod); }

}  // namespace gpunn::training
