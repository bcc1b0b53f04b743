#include "interchange/onnx/resize_weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

// Where the value x of the result lies among those of the input; nothing: beyond its ends, by tf_crop_and_resize.
std::optional<double> place_of(const ResizeRule& rule, int64_t x, int64_t from, int64_t to, double scale, double begin,
                               double end) {
  const auto at = static_cast<double>(x), last = static_cast<double>(from - 1), length = static_cast<double>(to);
  if (rule.places == "half_pixel") return (at + 0.5) / scale - 0.5;
  if (rule.places == "pytorch_half_pixel") return to == 1 ? 0 : (at + 0.5) / scale - 0.5;
  if (rule.places == "asymmetric") return at / scale;
  if (rule.places == "align_corners") return to == 1 ? 0 : at * last / (length - 1);
  if (rule.places == "half_pixel_symmetric") {
    const double unrounded = scale * static_cast<double>(from);
    const double offset = static_cast<double>(from) / 2 * (1 - length / unrounded);
    return offset + (at + 0.5) / scale - 0.5;
  }
  if (rule.places != "tf_crop_and_resize") throw Unsupported("resizes by places " + rule.places);
  const double place = begin * last + (to == 1 ? (end - begin) * last / 2 : at * (end - begin) * last / (length - 1));
  if (place < 0 || place > last) return std::nullopt;
  return place;
}

double cubic(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * a * x - 4 * a : 0;
}

bool takes_left(const std::string& rounding, double share) {
  if (rounding == "round_prefer_floor") return share <= 0.5;
  if (rounding == "round_prefer_ceil") return share < 0.5;
  if (rounding == "floor" || rounding == "ceil") return rounding == "floor";
  throw Unsupported("resizes by the rounding " + rounding);
}

// The weights of the neighbours from floor(place) + first on.
struct Neighbours {
  int64_t first = 0;
  std::vector<double> weights;
};

Neighbours neighbours(const ResizeRule& rule, double share, double scale) {
  if (rule.mode == "nearest") {
    if (share == 0) return {0, {1}};
    return takes_left(rule.rounding, share) ? Neighbours{0, {1}} : Neighbours{1, {1}};
  }
  if (rule.mode != "linear" && rule.mode != "cubic") throw Unsupported("resizes by " + rule.mode);
  const bool is_linear = rule.mode == "linear";
  // A filter is wider the smaller the result is.
  const double narrow = rule.has_filter ? std::min(scale, 1.0) : 1.0;
  const double reach = (is_linear ? 1 : 2) / narrow;
  Neighbours result{.first = static_cast<int64_t>(std::floor(-reach)) + 1, .weights = {}};
  double sum = 0;
  for (int64_t i = result.first; static_cast<double>(i) < static_cast<double>(2 - result.first); ++i) {
    const double distance = narrow * (static_cast<double>(i) - share);
    result.weights.push_back(is_linear ? std::max(0.0, 1 - std::abs(distance)) : cubic(distance, rule.cubic_a));
    sum += result.weights.back();
  }
  if (rule.has_filter) {
    for (double& weight : result.weights) weight /= sum;
  }
  return result;
}

}  // namespace

std::vector<double> resize_weights(const ResizeRule& rule, int64_t from, int64_t to, double scale, double begin,
                                   double end) {
  std::vector<double> all(static_cast<std::size_t>(from * to), 0);
  for (int64_t x = 0; x < to; ++x) {
    const std::optional<double> place = place_of(rule, x, from, to, scale, begin, end);
    if (!place) continue;
    const double left = std::floor(*place);
    Neighbours near = neighbours(rule, *place - left, scale);
    double* const row = all.data() + x * from;
    double sum = 0;
    for (std::size_t i = 0; i < near.weights.size(); ++i) {
      const int64_t at = static_cast<int64_t>(left) + near.first + static_cast<int64_t>(i);
      if (rule.excludes_outside && (at < 0 || at >= from)) continue;
      row[std::clamp<int64_t>(at, 0, from - 1)] += near.weights[i];
      sum += near.weights[i];
    }
    for (int64_t i = 0; rule.excludes_outside && i < from; ++i) row[i] /= sum;
  }
  return all;
}

}  // namespace gpunn::interchange
