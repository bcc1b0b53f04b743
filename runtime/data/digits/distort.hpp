#pragma once

#include <array>
#include <vector>

#include "data/digits/pen.hpp"

namespace gpunn::data {

// x' = a x + b y + shift.x, y' = c x + d y + shift.y
struct Affine {
  double a = 1, b = 0, c = 0, d = 1;
  Point shift;
  Point operator()(const Point& p) const { return {a * p.x + b * p.y + shift.x, c * p.x + d * p.y + shift.y}; }
};

// Rotation by up to 15 degrees either way, shear, and scales of width and height, about the origin.
Affine random_affine(PhiloxSource& random);

// The elastic distortion of Simard, Steinkraus and Platt ("Best practices for convolutional neural networks applied to
// visual document analysis", 2003): every point moves by a random field of displacements made smooth. Their field is
// white noise convolved with a Gaussian of about 4 pixels; here the noise sits on a grid of 7 pixels and the smoothing
// kernel is the cubic B-spline, whose deviation is 7 / sqrt(3) = 4.04 pixels and which, a polynomial, is the same bits
// on every machine.
class ElasticField {
 public:
  // `strength`: the largest displacement that the noise can make, pixels.
  ElasticField(double strength, PhiloxSource& random);
  Point operator()(const Point& p) const;

 private:
  static constexpr int kSpacing = 7;
  static constexpr int kCells = kDigitSize / kSpacing;
  static constexpr std::size_t kNodes = kCells + 3;
  std::array<Point, kNodes * kNodes> noise_;
};

}  // namespace gpunn::data
