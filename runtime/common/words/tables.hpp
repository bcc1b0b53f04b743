// Tables for the advice on unknown words: other frameworks' words, and explanations.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpunn::words {

// A word of gpunn, and other words for the same thing, separated by blanks.
struct Synonyms {
  std::string_view ours, theirs;
};
std::span<const Synonyms> synonyms();

// Words that ask for something, with blanks in between, and the sentence that answers them.
struct Explanation {
  std::string_view words, sentence;
};
std::span<const Explanation> explanations();

// In small letters, without '_', '-' and blanks: "BatchNorm" and "batch_norm" are one word.
std::string squashed(std::string_view word);

// Whether two words are one once they are squashed.
bool same(std::string_view a, std::string_view b);

// Whether `list`, with blanks in between, has a word that is the same as `word`.
bool lists(std::string_view list, std::string_view word);

}  // namespace gpunn::words
