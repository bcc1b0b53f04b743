#include "serving/protocol/target.hpp"

#include <algorithm>
#include <charconv>

#include "serving/protocol/service_error.hpp"

namespace gpunn::serving {

namespace {

constexpr std::size_t kMostTargetParts = 16;

std::string decoded(std::string_view text, bool plus_is_space) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      result += ' ';
    } else if (text[i] != '%') {
      result += text[i];
    } else {
      unsigned value = 0;
      const std::string_view digits = text.substr(i + 1, 2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
      if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2) {
        throw ServiceError(400, "the address has a '%' without two hexadecimal digits behind it");
      }
      result += static_cast<char>(value);
      i += 2;
    }
  }
  return result;
}

template <class Action>
void for_each_part(std::string_view text, char separator, const Action& action) {
  std::size_t count = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) {
      if (++count > kMostTargetParts) throw ServiceError(400, "the address has more than 16 parts");
      action(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

Target parse_target(std::string_view target) {
  Target result;
  target = target.substr(0, target.find('#'));
  const std::size_t question = std::min(target.find('?'), target.size());
  for_each_part(target.substr(0, question), '/', [&](auto part) { result.path.push_back(decoded(part, false)); });
  if (question == target.size()) return result;
  for_each_part(target.substr(question + 1), '&', [&](std::string_view pair) {
    const std::size_t equals = std::min(pair.find('='), pair.size());
    result.query.insert_or_assign(decoded(pair.substr(0, equals), true),
                                  decoded(pair.substr(std::min(equals + 1, pair.size())), true));
  });
  return result;
}

}  // namespace gpunn::serving
