#include <algorithm>
#include <cmath>

#include "training/schedule/curve.hpp"

namespace gpunn::training {

double polynomial_rate(const Curve& curve, double tick) {
  const double least = curve.config.min_learning_rate;
  const double left = std::max(1 - tick / curve.length, 0.0);
  return least + (curve.base - least) * std::pow(left, curve.config.power);
}

}  // namespace gpunn::training
