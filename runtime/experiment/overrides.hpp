#pragma once

#include <gpunn/experiment.hpp>

#include <string>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

// Writes short forms out: `optimizer: adam` becomes {type: adam}, `data: mnist` {dataset: mnist}, `model: x.yaml`
// {file: x.yaml}.
void expand_short_forms(YamlNode& experiment);

// Puts `--set` values into an experiment that has its short forms written out, as if they were in the file; their place
// is "--set key". Values are YAML, so that lists work. Whether a key exists is for the reader to say.
//
// Where a `--set` changes the type of a section, the file's keys that the new type lacks are dropped. Returns a note
// for the user about each such section.
std::vector<std::string> apply_overrides(YamlNode& experiment, const std::vector<Override>& overrides,
                                         Diagnostics& diagnostics);

}  // namespace gpunn::config
