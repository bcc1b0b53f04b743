#include "config/values.hpp"

#include <array>
#include <cmath>
#include <system_error>

#include "common/parse_number.hpp"

namespace gpunn::config {

namespace {

template <class T>
std::optional<T> read_all(std::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  return parse_number<T>(text);
}

}  // namespace

bool Range::contains(double value) const {
  return (above_min ? value > min : value >= min) && (below_max ? value < max : value <= max);
}

std::string Range::text() const {
  std::string low, high;
  if (std::isfinite(min)) low = (above_min ? "above " : "at least ") + number_text(min);
  if (std::isfinite(max)) high = (below_max ? "below " : "at most ") + number_text(max);
  return low.empty() || high.empty() ? low + high : low + " and " + high;
}

std::optional<double> number_of(std::string_view text) {
  const std::optional<double> value = read_all<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<int64_t> integer_of(std::string_view text) {
  if (const std::optional<int64_t> value = read_all<int64_t>(text)) return value;
  const std::optional<double> value = number_of(text);
  constexpr double kExact = 9007199254740992.0;  // 2^53: whole numbers up to here are doubles
  if (!value || std::abs(*value) > kExact || *value != std::floor(*value)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<bool> boolean_of(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

bool same_kind(std::string_view value, std::string_view fallback) {
  if (number_of(fallback)) return number_of(value).has_value();
  if (boolean_of(fallback)) return boolean_of(value).has_value();
  return true;
}

std::string number_text(double value) {
  constexpr double kPlain = 1e15;  // a whole number below needs no exponent
  if (std::abs(value) < kPlain && value == std::floor(value)) return std::to_string(static_cast<int64_t>(value));
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), error == std::errc() ? end : text.data()};
}

}  // namespace gpunn::config
