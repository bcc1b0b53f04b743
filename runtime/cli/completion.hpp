#pragma once

#include <string>

namespace gpunn::cli {

// A script with which the shell ("bash", "zsh" or "fish") asks gpunn for the words that can complete a line; empty for
// another shell.
std::string completion_script(const std::string& shell);

}  // namespace gpunn::cli
