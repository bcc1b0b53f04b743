#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// The candidates that `word` may stand for, best first: gpunn/words.hpp says how they are found.
std::vector<std::string> near_matches(std::string_view word, const std::vector<std::string>& candidates);
// "; did you mean 'learning_rate'?", or "; known: a, b, c" where nothing is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string in_quotes(std::string_view text);  // in single quotes
std::string human_bytes(uint64_t bytes);       // "1.5 MiB"

}  // namespace gpunn
