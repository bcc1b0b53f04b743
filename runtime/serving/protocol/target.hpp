#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::serving {

// The target of a request: "/v2/models/a%20b?top=3" is {"v2", "models", "a b"} with top = 3.
struct Target {
  std::vector<std::string> path;  // its parts, decoded; none is empty
  std::map<std::string, std::string, std::less<>> query;

  std::string value(std::string_view name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::string() : found->second;
  }
};

// Throws ServiceError(400) if two hexadecimal digits do not follow a percent sign, or if the target has more than 16
// parts or parameters.
Target parse_target(std::string_view target);

}  // namespace gpunn::serving
