#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace gpunn::config {

// The numbers that a key takes.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is out
  bool below_max = false;  // max itself is out

  bool contains(double value) const;
  std::string text() const;  // "at least 0 and below 1"; empty where every number is in
};

constexpr Range at_least(double min) { return {.min = min}; }
constexpr Range above(double min) { return {.min = min, .above_min = true}; }
constexpr Range between(double min, double max) { return {.min = min, .max = max}; }
constexpr Range above_up_to(double min, double max) { return {.min = min, .max = max, .above_min = true}; }
constexpr Range from_to_below(double min, double max) { return {.min = min, .max = max, .below_max = true}; }

// The value of a YAML scalar, independent of the locale; empty if it has another type. Numbers are finite; an integer
// may be written 1e3.
std::optional<double> number_of(std::string_view text);
std::optional<int64_t> integer_of(std::string_view text);
std::optional<bool> boolean_of(std::string_view text);  // true or false alone

// Whether a value may stand in a default's place: a number for a number, true or false for either.
bool same_kind(std::string_view value, std::string_view fallback);

// A short text that reads back as the same number.
std::string number_text(double value);

}  // namespace gpunn::config
