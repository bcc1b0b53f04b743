#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gpunn::cli {

struct Completion {
  std::string word;
  std::string about;  // a line of text, or empty
};

// The words that may replace the last of `words`, which are the line without the program's name. A word that ends in
// '=', ',' or '/' is not complete. The placeholder of an option or argument, "fp32|tf32|bf16" or "BACKEND|FILE", says
// what it accepts: words in lower case stand for themselves, and complete.cpp has a row for every other.
std::vector<Completion> complete(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace gpunn::cli
