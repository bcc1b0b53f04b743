#include "inference/tiles/image_lines.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace gpunn::inference {

bool has_line(const Dimension& dimension) {
  return std::ranges::any_of(dimension, [](const Factor& one) { return one.line.axis != kNoAxis; });
}

Dimension dimension_of(int64_t size, Line line) { return size == 1 ? Dimension{} : Dimension{{size, line}}; }

std::optional<Factor> as_one(const Dimension& dimension) {
  Factor one;
  for (const Factor& factor : dimension) {
    if (factor.line.axis != kNoAxis && one.size > 1) return std::nullopt;
    if (one.line.axis == kNoAxis) {
      one = {one.size * factor.size, factor.line};
    } else {
      const auto inner = static_cast<double>(factor.size);
      one = {one.size * factor.size, one.line.seen((1 - inner) / inner, 0, 1, factor.size)};
    }
  }
  return one;
}

std::optional<std::vector<Dimension>> regrouped(const std::vector<Dimension>& from, const Shape& to) {
  std::vector<Factor> factors;
  for (const Dimension& dimension : from) std::ranges::copy(dimension, std::back_inserter(factors));
  std::vector<Dimension> result;
  std::size_t next = 0;
  for (const int64_t size : to) {
    Dimension dimension;
    int64_t rest = size;
    while (rest > 1) {
      if (next == factors.size()) return std::nullopt;
      Factor& factor = factors[next];
      if (rest % factor.size == 0) {
        rest /= factor.size;
        dimension.push_back(factor);
        ++next;
        continue;
      }
      if (factor.size % rest != 0) return std::nullopt;
      // The outer part of the factor: each of its places sees `inner` places in a row.
      const int64_t inner = factor.size / rest;
      const bool follows = factor.line.axis != kNoAxis;
      dimension.push_back({rest, follows ? factor.line.seen(0, static_cast<double>(inner - 1), inner, 1) : Line{}});
      factor = {inner, {}};
      rest = 1;
    }
    result.push_back(std::move(dimension));
  }
  return next == factors.size() ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace gpunn::inference
