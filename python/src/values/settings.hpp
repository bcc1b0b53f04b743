#pragma once

#include <gpunn/experiment.hpp>

#include <string>
#include <utility>
#include <vector>

namespace gpunn::python {

// Keys of an experiment and their values in YAML.
using Settings = std::vector<std::pair<std::string, std::string>>;

inline std::vector<Override> overrides_of(const Settings& settings) {
  std::vector<Override> overrides;
  overrides.reserve(settings.size());
  for (const auto& [key, value] : settings) overrides.push_back({key, value});
  return overrides;
}

}  // namespace gpunn::python
