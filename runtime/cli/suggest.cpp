#include "cli/suggest.hpp"

#include <algorithm>
#include <numeric>

#include <CLI/CLI.hpp>

namespace gpunn::cli {

namespace {

// Insertions, deletions and substitutions that turn one word into the other.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row.back();
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string result;
  for (const std::string& word : words) result += (result.empty() ? "" : ", ") + word;
  return result;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 64;
  if (word.size() > kLongestWord) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = distance(word, candidate);
    if (edits < best_distance) {
      best_distance = edits;
      best = candidate;
    }
  }
  return best;
}

std::string explain(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* verb = &app;
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    const bool option = argument.size() > 2 && argument.compare(0, 2, "--") == 0;
    if (!option && argument.size() > 1 && argument[0] == '-') continue;  // a short option, or a negative number
    const std::string word = option ? argument.substr(0, argument.find('=')) : argument;
    const std::vector<std::string> names = option ? option_names(*verb) : verb_names(*verb);
    if (contains(names, word)) {
      if (!option) verb = verb->get_subcommand(word);
      continue;
    }
    if (names.empty()) continue;
    const std::string found = nearest(word, names);
    const std::string advice = found.empty() ? "; there are " + joined(names) : "; did you mean '" + found + "'?";
    if (!option) return "there is no verb '" + word + "'" + advice;
    return "'" + verb->get_name() + "' has no option '" + word + "'" + advice;
  }
  return "";
}

}  // namespace gpunn::cli
