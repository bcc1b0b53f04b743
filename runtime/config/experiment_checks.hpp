#pragma once

#include <gpunn/experiment.hpp>

#include <map>
#include <set>
#include <string>

#include "config/diagnostics.hpp"

namespace gpunn::config {

// What the user wrote.
struct GivenKeys {
  SourceLocation origin;                         // where to point for a key that nobody wrote
  std::map<std::string, SourceLocation> places;  // of each key, by its path
  std::set<std::string> bad;                     // those whose value was refused: no second complaint about them

  bool has(const std::string& key) const { return places.count(key) != 0; }
  bool sound(const std::string& key) const { return bad.count(key) == 0; }
  const SourceLocation& place(const std::string& key) const {
    const auto found = places.find(key);
    return found == places.end() ? origin : found->second;
  }
};

// Settings that are fine alone and don't go together.
void check_experiment(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics);

// Those of one section, a part of them.
void check_augmentation(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics);
void check_schedule(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics);

}  // namespace gpunn::config
