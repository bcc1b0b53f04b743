#include "runs/name_table.hpp"

#include <algorithm>

#include "common/files.hpp"
#include "common/text.hpp"
#include "config/diagnostics.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::training {

namespace {

using config::YamlEntry;
using config::YamlNode;

constexpr std::size_t kLongest = 1024;  // of a tensor's name in a checkpoint

std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// What the `*` of a part stood for, empty for a part without one; nothing where the word does not fit.
std::optional<std::string> fit(const std::string& part, const std::string& word) {
  const std::size_t star = part.find('*');
  if (star == std::string::npos) return part == word ? std::optional<std::string>("") : std::nullopt;
  if (word.size() < part.size()) return std::nullopt;  // the star is at least one character
  const std::size_t tail = part.size() - star - 1;
  if (word.compare(0, star, part, 0, star) != 0) return std::nullopt;
  if (word.compare(word.size() - tail, tail, part, star + 1, tail) != 0) return std::nullopt;
  return word.substr(star, word.size() - tail - star);
}

// `pattern` with its stars replaced, in order.
std::string fill_in(std::string_view pattern, const std::vector<std::string>& stars) {
  std::string result;
  std::size_t next = 0;
  for (const char c : pattern) {
    if (c == '*') {
      result += stars[next++];
    } else {
      result += c;
    }
  }
  return result;
}

// Calls `look` with everything that the stars of `pattern` may stand for in `name`, until it returns true.
template <class F>
bool each_fit(std::string_view pattern, std::string_view name, std::vector<std::string>& stars, const F& look) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name && look();
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = name.substr(star);
  for (std::size_t length = 1; length <= rest.size() && rest[length - 1] != '.'; ++length) {
    stars.emplace_back(rest.substr(0, length));
    if (each_fit(pattern.substr(star + 1), rest.substr(length), stars, look)) return true;
    stars.pop_back();
  }
  return false;
}

std::string wrong_with(const YamlEntry& row) {
  if (row.value.kind != YamlNode::Kind::scalar || row.value.scalar.empty()) {
    return "expected the name of a tensor here, found " + describe(row.value);
  }
  if (row.key.empty() || row.key.size() > kLongest || row.value.scalar.size() > kLongest) {
    return "a name has 1 to " + std::to_string(kLongest) + " characters";
  }
  for (const std::string& part : parts_of(row.key)) {
    if (std::count(part.begin(), part.end(), '*') > 1) return "more than one * between two dots";
  }
  const auto left = std::count(row.key.begin(), row.key.end(), '*');
  const auto right = std::count(row.value.scalar.begin(), row.value.scalar.end(), '*');
  if (right > left) return "the name on the right has more * than that on the left";
  return {};
}

}  // namespace

NameTable NameTable::load(const std::filesystem::path& file) {
  return parse(read_text(file, config::kLargestYamlFile), file.string());
}

NameTable NameTable::parse(std::string_view text, const std::string& origin) {
  const YamlNode root = config::parse_yaml(text, origin);
  if (root.kind != YamlNode::Kind::map) {
    config::fail_at(root.where, "expected a table of names, 'theirs: ours', found " + describe(root));
  }
  NameTable table;
  config::Diagnostics diagnostics;
  for (const YamlEntry& row : root.entries) {
    const std::string wrong = wrong_with(row);
    if (!wrong.empty()) diagnostics.add(row.where, wrong);
    table.rows_.push_back({parts_of(row.key), row.value.scalar});
  }
  diagnostics.throw_if_any();
  return table;
}

const NameTable::Row* NameTable::find_row(std::string_view name, std::vector<std::string>& stars) const {
  const std::vector<std::string> words = parts_of(name);
  for (const Row& row : rows_) {
    if (row.from.size() != words.size()) continue;
    stars.clear();
    bool fits = true;
    for (std::size_t i = 0; i < words.size() && fits; ++i) {
      const std::optional<std::string> star = fit(row.from[i], words[i]);
      fits = star.has_value();
      if (fits && row.from[i].find('*') != std::string::npos) stars.push_back(*star);
    }
    if (fits) return &row;
  }
  return nullptr;
}

std::string NameTable::rename(std::string_view name) const {
  std::vector<std::string> stars;
  const Row* row = find_row(name, stars);
  return row == nullptr ? std::string(name) : fill_in(row->to, stars);
}

bool NameTable::has_row(std::string_view name) const {
  std::vector<std::string> stars;
  return find_row(name, stars) != nullptr;
}

std::optional<std::string> NameTable::original(std::string_view name) const {
  for (const Row& row : rows_) {
    const std::string from = join(row.from, ".");
    if (std::count(from.begin(), from.end(), '*') != std::count(row.to.begin(), row.to.end(), '*')) continue;
    std::string found;
    std::vector<std::string> stars;
    // A row above may take the name for something else.
    const auto leads_here = [&] {
      found = fill_in(from, stars);
      return rename(found) == name;
    };
    if (each_fit(row.to, name, stars, leads_here)) return found;
  }
  return rename(name) == name ? std::optional<std::string>(name) : std::nullopt;
}

}  // namespace gpunn::training
