// Advice on a word that is not known where it stands.
#pragma once

#include <gpunn/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// The candidates that `word` may stand for. A candidate matches if it differs only in case and '_', if `word` is the
// field's name for it (`lr`, `dense`), a typing slip, or a part of it. Up to three that are equally good: `pool` is a
// part of several layers' names. Empty if none is near.
GPUNN_API std::vector<std::string> best_matches(std::string_view word, const std::vector<std::string>& candidates);

// What `word` asks for where a sentence says it better than another word: what this version does not serve and what to
// do instead, or where the setting is. Takes a file's ending, too (".onnx"). Empty for other words.
GPUNN_API std::string_view explanation(std::string_view word);

// "; did you mean 'learning_rate'?", or "" where nothing is near.
GPUNN_API std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);
// The same, or "; known: a, b, c" where nothing is near.
GPUNN_API std::string did_you_mean_or_list(std::string_view word, const std::vector<std::string>& candidates);
// As did_you_mean, with the explanation of `word` where it has one. For the program's own words, not for names of the
// user's.
GPUNN_API std::string advice(std::string_view word, const std::vector<std::string>& candidates);
// The same, or else the candidates. Where they are many, only the command that lists them: "'gpunn help keys'".
GPUNN_API std::string advice_or_list(std::string_view word, const std::vector<std::string>& candidates,
                                     std::string_view command);

}  // namespace gpunn
