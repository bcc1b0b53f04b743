#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gpunn::cli {

// The mistake in a line that does not parse, if it is an unknown verb or option: "there is no verb 'trian'; did you
// mean 'train'?". Else an empty string. `arguments` is the line without the program's name.
std::string explain(const CLI::App& app, const std::vector<std::string>& arguments);

// The verb that a line names, or the known part of it: at least the program itself.
const CLI::App& verb_of(const CLI::App& app, const std::vector<std::string>& arguments);

// "gpunn data get"
std::string full_name(const CLI::App& verb);

}  // namespace gpunn::cli
