#pragma once

#include <string>
#include <variant>
#include <vector>

namespace gpunn {

// Parameters that are updated differently from the rest.
struct ParameterGroup {
  std::vector<std::string> match;  // names of parameters; '*' stands for any characters, '?' for one
  double learning_rate_factor = 1;
  // For all parameters that match: true: the optimizer's value; false: 0; or a value of their own. By default the
  // optimizer's, on weights only.
  std::variant<std::monostate, bool, double> weight_decay;

  bool operator==(const ParameterGroup&) const = default;
};

}  // namespace gpunn
