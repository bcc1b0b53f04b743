#pragma once

#include <string>

namespace gpunn::cli {

// A script that has the shell ("bash", "zsh" or "fish") ask gpunn for the words that may come next; empty for another.
std::string completion_script(const std::string& shell);

}  // namespace gpunn::cli
