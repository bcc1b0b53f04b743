#pragma once

#include <string>

namespace CLI {
class App;
}

namespace gpunn::cli {

// Completion scripts made from the tree of verbs and options. The value of --backend is completed by asking gpunn.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

}  // namespace gpunn::cli
