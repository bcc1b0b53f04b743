#pragma once

#include <gpunn/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "ops/op.hpp"

// Code shared by the ops that augment the images of a training batch.
namespace gpunn::ops {

// Images x[N,C,H,W], or label maps x[N,H,W], and the numbers that each of them draws.
class Images {
 public:
  explicit Images(const ReferenceCall& call) : call_(call) {
    const Shape& x = call.in_type(0).shape;
    n_ = x.at(0);
    c_ = x.size() == 4 ? x[1] : 1;
    h_ = x.at(x.size() - 2);
    w_ = x.at(x.size() - 1);
  }

  int64_t count() const { return n_; }
  int64_t channels() const { return c_; }
  int64_t rows() const { return h_; }
  int64_t columns() const { return w_; }
  std::size_t place(int64_t n, int64_t c, int64_t h, int64_t w) const { return at(((n * c_ + c) * h_ + h) * w_ + w); }

  // x at a pixel, or what lies outside an image.
  double pixel(int64_t n, int64_t c, int64_t h, int64_t w, const Values& border) const {
    const bool inside = h >= 0 && h < h_ && w >= 0 && w < w_;
    return inside ? call_.in(0)[place(n, c, h, w)] : border[at(c)];
  }

  // u[0..3] of image n.
  template <class Attrs>
  std::array<double, 4> draw(const Attrs& attrs, int64_t n) const {
    const auto counter = static_cast<uint64_t>(static_cast<int64_t>(call_.in(1).at(0)));
    const gpunn_random_words words =
        gpunn_philox(attrs.seed, attrs.stream, counter * static_cast<uint64_t>(n_) + static_cast<uint64_t>(n));
    std::array<double, 4> u{};
    for (std::size_t k = 0; k < u.size(); ++k) u[k] = gpunn_random_unit(words.word[k]);
    return u;
  }

 private:
  const ReferenceCall& call_;
  int64_t n_ = 0, c_ = 0, h_ = 0, w_ = 0;
};

// x between pixels, in proportion to how near the four around are.
inline double bilinear(const Images& x, int64_t n, int64_t c, double row, double column, const Values& border) {
  if (std::abs(row) > 1e9 || std::abs(column) > 1e9) return border[at(c)];  // and no integer is far out of range
  double sum = 0;
  const double top = std::floor(row), left = std::floor(column);
  for (const double h : {top, top + 1}) {
    for (const double w : {left, left + 1}) {
      const double weight = (1 - std::abs(row - h)) * (1 - std::abs(column - w));
      sum += weight * x.pixel(n, c, static_cast<int64_t>(h), static_cast<int64_t>(w), border);
    }
  }
  return sum;
}

// The pixel of x that is nearest.
inline double nearest(const Images& x, int64_t n, int64_t c, double row, double column, const Values& border) {
  if (std::abs(row) > 1e9 || std::abs(column) > 1e9) return border[at(c)];
  return x.pixel(n, c, static_cast<int64_t>(std::floor(row + 0.5)), static_cast<int64_t>(std::floor(column + 0.5)),
                 border);
}

// bilinear or nearest
using Sampler = double (*)(const Images& x, int64_t n, int64_t c, double row, double column, const Values& border);

inline double largest_magnitude(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

// --- Cases ---

inline constexpr uint64_t kImageSeed = 0x9E3779B97F4A7C15ULL;    // both words of the key
inline constexpr uint64_t kImageStream = 0x0000000400000003ULL;  // both words of the stream
inline const std::vector<int64_t> kImageCounters = {0, 12345, 5000000000};
// One pixel, one row or column, primes, and no images or pixels at all.
inline const std::vector<Shape> kImageShapes = {{1, 1, 1, 1},   {3, 2, 1, 7},    {2, 3, 5, 1}, {5, 3, 7, 11},
                                                {7, 1, 28, 28}, {31, 3, 32, 32}, {0, 3, 4, 4}, {2, 1, 0, 5}};

// Like kImageShapes, without channels.
inline Shape map_shape(const Shape& image) { return {image.at(0), image.at(2), image.at(3)}; }
inline InputSpec label_map(const Shape& image) { return i32(map_shape(image), integers(0, 20)); }

// The case with label maps for images, and a border that is no class.
inline CaseSpec of_label_maps(CaseSpec spec) {
  spec.inputs[0] = label_map(spec.inputs[0].type.shape);
  if (spec.inputs.size() > 2) spec.inputs[2] = i32({}, constant(255));
  return spec;
}

// The cases of an op on images, for its like on label maps.
template <std::vector<CaseSpec> (*of_images)()>
std::vector<CaseSpec> label_map_cases() {
  std::vector<CaseSpec> cases = of_images();
  for (CaseSpec& spec : cases) spec = of_label_maps(spec);
  return cases;
}

// Images with a border at a counter.
template <class Attrs>
CaseSpec image_case(const Attrs& attrs, const Shape& x, int64_t counter) {
  return {.attrs = Attributes::of(attrs),
          .inputs = {f32(x), step(counter), f32({x[1]}, uniform(2, 3))},
          .note = "counter " + std::to_string(counter)};
}

template <class Attrs>
CaseSpec typical_image_case(const Attrs& attrs) {
  return {.attrs = Attributes::of(attrs), .inputs = {typical_images(), step(1), typical_channels()}};
}

template <class Attrs>
CaseSpec image_request(Written& r, const Attrs& attrs) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W");
  return {.attrs = Attributes::of(attrs), .inputs = {f32(r.sizes), step(0), f32({r.sizes[1]})}};
}

template <class Attrs>
CaseSpec typical_map_case(const Attrs& attrs) {
  return {.attrs = Attributes::of(attrs), .inputs = {label_map({64, 1, 224, 224}), step(1), i32({}, constant(255))}};
}

template <class Attrs>
CaseSpec map_request(Written& r, const Attrs& attrs) {
  if (r.sizes.size() != 3) bad(r, "N,H,W");
  return {.attrs = Attributes::of(attrs), .inputs = {i32(r.sizes, integers(0, 20)), step(0), i32({}, constant(255))}};
}

}  // namespace gpunn::ops
