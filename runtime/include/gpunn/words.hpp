// Advice on words that are unknown at their place.
#pragma once

#include <gpunn/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// The candidates that `word` may mean. A candidate matches if it differs only in case and '_', if `word` is another
// name for it (`lr`, `dense`), a typing error, or a part of it. Returns up to three equally good ones: `pool` is a part
// of several layers' names. Empty if none is near.
GPUNN_API std::vector<std::string> best_matches(std::string_view word, const std::vector<std::string>& candidates);

// A sentence that explains `word`, where this helps more than another word: a missing feature and what to do instead,
// or the place of a setting. Accepts a file's ending, too (".onnx"). Empty for other words.
GPUNN_API std::string_view explanation(std::string_view word);

// "; did you mean 'learning_rate'?", or "" if nothing is near.
GPUNN_API std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);
// The same, or "; known: a, b, c" if nothing is near.
GPUNN_API std::string did_you_mean_or_list(std::string_view word, const std::vector<std::string>& candidates);
// Like did_you_mean, with the explanation of `word` if it has one. For the program's own words, not for the user's
// names.
GPUNN_API std::string advice(std::string_view word, const std::vector<std::string>& candidates);
// The same, or else the candidates. If there are many, only the command that lists them: "'gpunn help keys'".
GPUNN_API std::string advice_or_list(std::string_view word, const std::vector<std::string>& candidates,
                                     std::string_view command);

}  // namespace gpunn
