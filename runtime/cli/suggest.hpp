#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gpunn::cli {

// The candidate that `word` is a slip of, or an empty string.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

// What is wrong with a line that does not parse, where that is a word that is no verb or no option: "there is no verb
// 'trian'; did you mean 'train'?". Else an empty string. `arguments` is the line without the program's name.
std::string explain(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace gpunn::cli
