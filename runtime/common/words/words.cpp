#include <gpunn/words.hpp>

#include <algorithm>
#include <cctype>
#include <tuple>
#include <utility>

#include "common/text.hpp"
#include "common/words/tables.hpp"

namespace gpunn {

namespace words {

namespace {

constexpr std::string_view kSeparators = "_- ";

char small(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

std::string squashed(std::string_view word) {
  std::string result;
  for (const char c : word) {
    if (kSeparators.find(c) == std::string_view::npos) result += small(c);
  }
  return result;
}

bool same(std::string_view a, std::string_view b) {
  while (true) {
    a.remove_prefix(std::min(a.find_first_not_of(kSeparators), a.size()));
    b.remove_prefix(std::min(b.find_first_not_of(kSeparators), b.size()));
    if (a.empty() || b.empty()) return a.empty() && b.empty();
    if (small(a.front()) != small(b.front())) return false;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
}

bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (same(list.substr(0, end), word)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace words

namespace {

using words::squashed;

constexpr std::size_t kLongestWord = 128;  // longer words are no slips, and the table of edits stays small
constexpr std::size_t kMostNamed = 3;      // in "did you mean"
constexpr std::size_t kMostListed = 16;    // of the program's own words in a message

// Letter case and '-' against '_' are no difference worth an edit.
std::string folded(std::string_view word) {
  std::string result(word);
  for (char& c : result) c = c == '-' ? '_' : words::small(c);
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

// How a candidate is near to a word, best first.
enum class Nearness { same, synonym, slip, beginning, part, none };

struct Match {
  Nearness nearness = Nearness::none;
  std::size_t distance = 0;  // in edits of a slip, the row of a synonym, else letters that are missing
  std::string candidate;
};

bool has_part(std::string_view text, std::string_view part, std::size_t shortest) {
  return part.size() >= shortest && text.find(part) != std::string_view::npos;
}

Match match(std::string_view word, const std::string& candidate) {
  if (candidate.size() > kLongestWord) return {};
  const std::string wanted = squashed(word), known = squashed(candidate);
  if (wanted == known) return {Nearness::same, 0, candidate};
  const auto table = words::synonyms();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (words::same(table[i].ours, candidate) && words::lists(table[i].theirs, word)) {
      return {Nearness::synonym, i, candidate};
    }
  }
  const std::size_t longer = std::max(word.size(), candidate.size());
  const std::size_t allowed = longer <= 2 ? 0 : std::max<std::size_t>(1, longer / 3);
  const std::size_t edits = edit_distance(folded(word), folded(candidate));
  if (edits <= allowed && edits < longer) return {Nearness::slip, edits, candidate};
  if (wanted.size() >= 2 && known.starts_with(wanted)) {
    return {Nearness::beginning, known.size() - wanted.size(), candidate};
  }
  // A slip in a word that is not typed to its end: `cifra` for `cifar10`.
  const std::string_view begun = std::string_view(known).substr(0, wanted.size());
  if (wanted.size() >= 4 && begun.size() == wanted.size() && edit_distance(wanted, begun) == 1) {
    return {Nearness::beginning, known.size() - wanted.size(), candidate};
  }
  if (has_part(known, wanted, 3)) return {Nearness::part, known.size() - wanted.size(), candidate};
  if (has_part(wanted, known, 4)) return {Nearness::part, wanted.size() - known.size(), candidate};
  return {};
}

std::vector<Match> matches(std::string_view word, const std::vector<std::string>& candidates) {
  std::vector<Match> found;
  if (word.empty() || word.size() > kLongestWord) return found;
  for (const std::string& candidate : candidates) {
    Match one = match(word, candidate);
    if (one.nearness != Nearness::none) found.push_back(std::move(one));
  }
  std::stable_sort(found.begin(), found.end(), [](const Match& a, const Match& b) {
    return std::tie(a.nearness, a.distance) < std::tie(b.nearness, b.distance);
  });
  return found;
}

// A slip has one right word, while a part may stand for several.
std::vector<std::string> best_of(const std::vector<Match>& found) {
  std::vector<std::string> result;
  for (const Match& one : found) {
    const bool as_good = one.nearness == found.front().nearness && one.nearness >= Nearness::beginning;
    if (!result.empty() && (!as_good || result.size() == kMostNamed)) break;
    result.push_back(one.candidate);
  }
  return result;
}

std::string question(const std::vector<std::string>& named) {
  if (named.empty()) return {};
  std::string text = "; did you mean ";
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (i > 0) text += i + 1 == named.size() ? " or " : ", ";
    text += in_quotes(named[i]);
  }
  return text + "?";
}

}  // namespace

std::vector<std::string> best_matches(std::string_view word, const std::vector<std::string>& candidates) {
  return best_of(matches(word, candidates));
}

std::string_view explanation(std::string_view word) {
  if (word.empty() || word.size() > kLongestWord) return {};
  for (const words::Explanation& row : words::explanations()) {
    if (words::lists(row.words, word)) return row.sentence;
  }
  return {};
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  return question(best_matches(word, candidates));
}

std::string did_you_mean_or_list(std::string_view word, const std::vector<std::string>& candidates) {
  std::string text = did_you_mean(word, candidates);
  return text.empty() && !candidates.empty() ? "; known: " + join(candidates, ", ") : text;
}

std::string advice(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<Match> found = matches(word, candidates);
  const std::string_view sentence = explanation(word);
  if (sentence.empty()) return question(best_of(found));
  // What a word asks for is known better than what it may be a slip of.
  const bool sure = !found.empty() && found.front().nearness <= Nearness::synonym;
  std::string text = sure ? question({found.front().candidate}) + " " : ". ";
  return text.append(sentence);
}

std::string advice_or_list(std::string_view word, const std::vector<std::string>& candidates,
                           std::string_view command) {
  std::string text = advice(word, candidates);
  if (!text.empty() || candidates.empty()) return text;
  if (candidates.size() <= kMostListed || command.empty()) return "; known: " + join(candidates, ", ");
  return "; " + std::string(command) + " lists all " + std::to_string(candidates.size());
}

}  // namespace gpunn
