#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace gpunn {

// The number that all of the text is, in decimal; none if it is anything else or does not fit T.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace gpunn
