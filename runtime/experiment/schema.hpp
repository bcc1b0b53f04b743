#pragma once

#include <gpunn/experiment.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "config/key.hpp"

namespace gpunn::config {

// Everything about a key of an experiment. Reading, defaults, suggestions, `--set`, resolved_yaml and the table in
// docs/experiments.md come from here. Each room declares its keys beside the code that uses them; schema.cpp gathers
// them, and declares the members of Experiment itself.
using Key = KeyOf<Experiment>;

// In the order of the documentation. `model` is not among them: see model_reader.hpp.
const std::vector<Key>& schema();
const Key* find_key(std::string_view path);
std::vector<std::string> sections();                         // "data", "optimizer", ...
std::vector<std::string> keys_of(std::string_view section);  // names, sections and `model` among those at the top
// The key of a section that says of what kind it is: "optimizer.type", "data.dataset"; a section may not have it.
std::string kind_key_of(std::string_view section);
// The kind chosen in a section that has one ("sgd" for optimizer); empty for others.
std::string kind_of(const Experiment& experiment, std::string_view section);
bool belongs(const Key& key, const Experiment& experiment);

}  // namespace gpunn::config
