#include "common/escape.hpp"

#include <cstddef>
#include <cstdint>

namespace gpunn {

namespace {

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;  // U+0080 to U+009F
}

void append_code(std::string& result, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '\n') {
    result += "\\n";
  } else if (c == '\r') {
    result += "\\r";
  } else if (c == '\t') {
    result += "\\t";
  } else if (c == '\0') {
    result += "\\0";
  } else {
    result += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
}

}  // namespace

std::size_t utf8_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool beyond = (first == 0xED && byte(1) > 0x9F) || (first == 0xF4 && byte(1) > 0x8F);
  return overlong || beyond ? 0 : bytes;
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = utf8_bytes(text);
    const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    const bool plain = bytes > 0 && (!is_control(character) || kept.find(character) != std::string_view::npos);
    if (plain) {
      result += character;
    } else {
      for (const char c : character) append_code(result, c);
    }
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace gpunn
