#include "common/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

namespace gpunn {

namespace {

// Letter case and '-' against '_' are no difference worth an edit.
std::string folded(std::string_view word) {
  std::string result(word);
  for (char& c : result) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// Insertions, deletions, substitutions and swaps of neighbours (the "optimal string alignment" distance), in three
// rows of the table.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

constexpr std::size_t kLongestWord = 128;  // nobody mistypes a longer one, and the table stays small

}  // namespace

std::vector<std::string> near_matches(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string typed = folded(word);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const std::size_t longer = std::max(typed.size(), candidate.size());
    const std::size_t allowed = longer <= 2 ? 0 : std::max<std::size_t>(1, longer / 3);
    const std::size_t distance = edit_distance(typed, folded(candidate));
    if (distance <= allowed && distance < longer) found.emplace_back(distance, candidate);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  result.reserve(found.size());
  for (auto& [distance, candidate] : found) result.push_back(std::move(candidate));
  return result;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = near_matches(word, candidates);
  if (!near.empty()) return "; did you mean " + in_quotes(near.front()) + "?";
  return candidates.empty() ? std::string() : "; known: " + join(candidates, ", ");
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += separator;
    result += parts[i];
  }
  return result;
}

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  result += text;
  result += '\'';
  return result;
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
