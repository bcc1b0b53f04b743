#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gpunn::cli {

// What is wrong with a line that does not parse, where that is a word that is no verb or no option: "there is no verb
// 'trian'; did you mean 'train'?". Else an empty string. `arguments` is the line without the program's name.
std::string explain(const CLI::App& app, const std::vector<std::string>& arguments);

// The verb that a line names, or as much of it as is known: the program itself at least.
const CLI::App& verb_of(const CLI::App& app, const std::vector<std::string>& arguments);

// "gpunn data get"
std::string full_name(const CLI::App& verb);

}  // namespace gpunn::cli
