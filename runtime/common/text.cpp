#include "common/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "common/escape.hpp"

namespace gpunn {

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += separator;
    result += parts[i];
  }
  return result;
}

std::string named_count(const std::vector<std::string>& names, const std::string& one, const std::string& several) {
  constexpr std::size_t kMostNames = 3;
  std::vector<std::string> first(names.begin(),
                                 names.begin() + static_cast<std::ptrdiff_t>(std::min(kMostNames, names.size())));
  return std::to_string(names.size()) + " " + (names.size() == 1 ? one : several) + ": " + join(first, ", ") +
         (names.size() > kMostNames ? ", ..." : "");
}

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  result += escaped(text);
  result += '\'';
  return result;
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_letter || static_cast<unsigned char>(c) > 127 ||
           std::string_view("_-./:=+,@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + '\'';
}

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  static constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.96 would print as "1024.0".
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

}  // namespace gpunn
