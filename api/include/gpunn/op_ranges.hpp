// The ranges of op_attrs.inc: what an attribute may be, whatever the tensors are.
#pragma once

#include <gpunn/kernel.hpp>
#include <gpunn/op_signature.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace gpunn::ops {

// "[0, 1)", of non-negative integers and "inf", as numbers. Without a text, every value is in it, NaN too.
class Range {
 public:
  constexpr explicit Range(std::string_view text) : text_(text) {
    if (text.empty()) return;
    const std::size_t comma = text.find(", ");
    low_ = number(text.substr(1, comma - 1));
    high_ = number(text.substr(comma + 2, text.size() - comma - 3));
  }

  constexpr bool contains(double value) const {
    if (text_.empty()) return true;
    return (text_.front() == '[' ? value >= low_ : value > low_) &&
           (text_.back() == ']' ? value <= high_ : value < high_);
  }

  constexpr double low() const { return low_; }
  constexpr double high() const { return high_; }

  // "1 or more", "above 0", "finite", "in [0, 1)"; empty: anything.
  std::string text() const {
    if (text_.empty() || high_ < kInfinity) return text_.empty() ? "" : "in " + std::string(text_);
    if (low_ == -kInfinity) return "finite";
    const std::string low = std::to_string(static_cast<int64_t>(low_));
    return text_.front() == '[' ? low + " or more" : "above " + low;
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  static constexpr double number(std::string_view text) {
    if (text == "inf") return kInfinity;
    if (text == "-inf") return -kInfinity;
    double value = 0;
    for (const char digit : text) value = 10 * value + (digit - '0');
    return value;
  }

  std::string_view text_;
  double low_ = -kInfinity, high_ = kInfinity;
};

namespace detail {

inline std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return std::to_string(static_cast<int64_t>(value));
  return std::to_string(value);
}

// Of a single value, or of the `count` first elements of an array.
template <class Member>
void require_in_range(const Member& member, std::size_t count, const char* name, const Range& range) {
  if constexpr (std::is_array_v<Member>) {
    bool fits = true;
    std::string text;
    for (std::size_t i = 0; i < std::min(count, std::extent_v<Member>); ++i) {
      fits = fits && range.contains(static_cast<double>(member[i]));
      text += (i == 0 ? "" : std::extent_v<Member> == 2 ? "x" : ", ") + number_text(static_cast<double>(member[i]));
    }
    require(fits, std::string(name) + " " + text + " must be " + range.text());
  } else {
    const auto value = static_cast<double>(member);
    require(range.contains(value), std::string(name) + " " + number_text(value) + " must be " + range.text());
  }
}

// How many elements an array of attributes has: `rank` of them where the struct has one.
template <class Attributes>
std::size_t list_length(const Attributes& attributes) {
  if constexpr (requires { attributes.rank; }) {
    require(attributes.rank >= 0 && attributes.rank <= GPUNN_MAX_RANK,
            "rank " + std::to_string(attributes.rank) + " must be in [0, 8]");
    return static_cast<std::size_t>(attributes.rank);
  }
  return GPUNN_MAX_RANK;
}

template <class Attributes>
void require_ranges(int32_t /*op*/, const Attributes& /*attributes*/) {}

#define GPUNN_ATTRS(name)                                                                 \
  template <>                                                                             \
  inline void require_ranges<name>([[maybe_unused]] int32_t op, const name& attributes) { \
    [[maybe_unused]] const std::size_t length = list_length(attributes);                  \
    [[maybe_unused]] const bool all = true;                                               \
    [[maybe_unused]] const auto of = [op](auto... those) { return ((op == int32_t{those}) || ...); };
#define GPUNN_ATTR(type, member, extent, kind, range, fallback, help, ops) \
  if (ops) require_in_range(attributes.member, length, #member, Range(range));
#define GPUNN_UNNAMED(type, member)
#define GPUNN_ATTRS_END(name) }
#include <gpunn/op_attrs.inc>
#undef GPUNN_ATTRS
#undef GPUNN_ATTR
#undef GPUNN_UNNAMED
#undef GPUNN_ATTRS_END

}  // namespace detail

// Throws Misfit, with the attribute's name, where one of those that the op uses is out of its range. `attributes` is
// the op's struct.
inline void require_attribute_ranges(int32_t op, const void* attributes) {
  switch (op) {
#define GPUNN_OP(name, id, struct_name, signature, summary) \
  case id:                                                  \
    return detail::require_ranges(op, plugin::read_struct<struct_name>(attributes));
#include <gpunn/op_list.inc>
#undef GPUNN_OP
    default:
      return;
  }
}

}  // namespace gpunn::ops
