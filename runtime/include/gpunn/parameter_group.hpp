#pragma once

#include <string>
#include <variant>
#include <vector>

namespace gpunn {

// Parameters that are updated in another way than the rest.
struct ParameterGroup {
  std::vector<std::string> match;  // names of parameters; '*' stands for any characters, '?' for one
  double learning_rate_factor = 1;
  // Of all that match: the optimizer's or none (true, false), or their own. Else the optimizer's, of weights alone.
  std::variant<std::monostate, bool, double> weight_decay;

  bool operator==(const ParameterGroup&) const = default;
};

}  // namespace gpunn
