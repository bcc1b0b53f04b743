#pragma once

#include <filesystem>
#include <string>

#include "config/yaml_tree.hpp"

namespace gpunn::config {

// Replaces the paths in the tree, which are relative to `folder`, by absolute ones; the model's, with which messages
// begin, by what it is from the working directory. `runs` stays. Returns the YAML `text` of the tree with absolute
// paths, so that a copy of it can be read in any folder; a path that is not one word on one line stays as it is there.
std::string resolve_paths(YamlNode& experiment, const std::filesystem::path& folder, std::string text);

}  // namespace gpunn::config
