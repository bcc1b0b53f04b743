#include "data/digits/distort.hpp"

#include <algorithm>

namespace gpunn::data {

Affine random_affine(PhiloxSource& random) {
  // The tangent of half the angle gives sine and cosine without the math library, whose last bit differs by machine.
  constexpr double kTangentOfHalf15Degrees = 0.13165249758739585;
  const double t = random.uniform(-kTangentOfHalf15Degrees, kTangentOfHalf15Degrees);
  const double cosine = (1 - t * t) / (1 + t * t);
  const double sine = 2 * t / (1 + t * t);
  const double shear = random.uniform(-0.3, 0.3);
  const double height = random.uniform(0.85, 1.1);
  const double width = height * random.uniform(0.7, 1.15);
  // Scale first, then shear (x += shear * y), then rotate.
  const double sheared = shear * height;
  return {cosine * width, cosine * sheared - sine * height, sine * width, sine * sheared + cosine * height, {}};
}

ElasticField::ElasticField(double strength, PhiloxSource& random) {
  for (Point& node : noise_) {
    node.x = random.uniform(-strength, strength);
    node.y = random.uniform(-strength, strength);
  }
}

namespace {

// The four weights of the uniform cubic B-spline at t in [0, 1); they add up to 1.
std::array<double, 4> spline_weights(double t) {
  const double u = 1 - t;
  return {u * u * u / 6, (3 * t * t * t - 6 * t * t + 4) / 6, (3 * u * u * u - 6 * u * u + 4) / 6, t * t * t / 6};
}

}  // namespace

Point ElasticField::operator()(const Point& p) const {
  const double gx = std::clamp(p.x / kSpacing, 0.0, double{kCells});
  const double gy = std::clamp(p.y / kSpacing, 0.0, double{kCells});
  const int column = std::min(static_cast<int>(gx), kCells - 1);
  const int row = std::min(static_cast<int>(gy), kCells - 1);
  const std::array<double, 4> wx = spline_weights(gx - column);
  const std::array<double, 4> wy = spline_weights(gy - row);
  Point moved = p;
  const auto nodes_right = static_cast<std::size_t>(column);
  const auto nodes_down = static_cast<std::size_t>(row);
  for (std::size_t j = 0; j < 4; ++j) {
    for (std::size_t i = 0; i < 4; ++i) {
      const Point& node = noise_[(nodes_down + j) * kNodes + nodes_right + i];
      moved.x += wx[i] * wy[j] * node.x;
      moved.y += wx[i] * wy[j] * node.y;
    }
  }
  return moved;
}

}  // namespace gpunn::data
