#pragma once

#include <string>

namespace gpunn::config {

// The tables of docs/experiments.md, in Markdown: every key with its type, default and meaning, and every layer with
// its parameters. A test holds the page against them.
std::string keys_table();
std::string layers_table();

}  // namespace gpunn::config
