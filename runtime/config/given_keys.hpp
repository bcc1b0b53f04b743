#pragma once

#include <gpunn/error.hpp>

#include <map>
#include <set>
#include <string>

namespace gpunn::config {

// The value as the user wrote it.
struct GivenKeys {
  SourceLocation origin;                         // the place to report for a key that the user left out
  std::map<std::string, SourceLocation> places;  // of each key, by its path
  std::set<std::string> bad;                     // those whose value was refused: no second complaint about them

  bool has(const std::string& key) const { return places.count(key) != 0; }
  bool sound(const std::string& key) const { return bad.count(key) == 0; }
  const SourceLocation& place(const std::string& key) const {
    const auto found = places.find(key);
    return found == places.end() ? origin : found->second;
  }
};

}  // namespace gpunn::config
