#include "serving/protocol/header_text.hpp"

#include <algorithm>
#include <cctype>

namespace gpunn::serving {

namespace {

char lower_of(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_same_word(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, lower_of, lower_of); }

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower_of);
  return result;
}

}  // namespace gpunn::serving
