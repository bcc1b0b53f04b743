// Dimensions of tensors that follow the rows or columns of an image.
#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

namespace gpunn::inference {

inline constexpr int kNoAxis = -1;

// How a dimension follows the rows or columns of the image: the number at place i depends on the pixels from
// i * down / up + first to i * down / up + last.
struct Line {
  int axis = kNoAxis;  // 0: rows, 1: columns
  int64_t up = 1, down = 1;
  double first = 0, last = 0;

  double pace() const { return static_cast<double>(down) / static_cast<double>(up); }
  // Place i sees the places from `from` to `to` about i * times / per of this line.
  Line seen(double from, double to, int64_t times, int64_t per) const {
    const int64_t common = std::gcd(up * per, down * times);
    return {axis, up * per / common, down * times / common, first + pace() * from, last + pace() * to};
  }
};

// A dimension is a product of factors, the slowest first. Reshaping regroups them.
struct Factor {
  int64_t size = 1;
  Line line = {};
};
using Dimension = std::vector<Factor>;

bool has_line(const Dimension& dimension);
Dimension dimension_of(int64_t size, Line line = {});

// The dimension as a single factor. Nothing if its places do not follow one line in order.
std::optional<Factor> as_one(const Dimension& dimension);

// The factors of one shape in the dimensions of another. Nothing if a size falls between the factors.
std::optional<std::vector<Dimension>> regrouped(const std::vector<Dimension>& from, const Shape& to);

}  // namespace gpunn::inference
