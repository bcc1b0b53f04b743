#include <cmath>

#include "training/schedule/curve.hpp"

namespace gpunn::training {

double exponential_rate(const Curve& curve, double tick) {
  return curve.base * std::exp(-curve.config.k * tick / curve.unit);
}

}  // namespace gpunn::training
