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

// What may stand in place of the last of `words`, which are those of a line without the program's name. A word that
// ends in '=', ',' or '/' goes on. What an option or argument takes is read from its type's name, "fp32|tf32|bf16" or
// "BACKEND|FILE": words in small letters stand for themselves, complete.cpp has a row for each other.
std::vector<Completion> complete(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace gpunn::cli
