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

// Images x[N,C,H,W] and the numbers that each of them draws.
class Images {
 public:
  explicit Images(const ReferenceCall& call)
      : call_(call), n_(call.in_dim(0, 0)), c_(call.in_dim(0, 1)), h_(call.in_dim(0, 2)), w_(call.in_dim(0, 3)) {}

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
  int64_t n_, c_, h_, w_;
};

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

}  // namespace gpunn::ops
