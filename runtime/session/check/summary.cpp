#include "session/check/summary.hpp"

#include "ops/comparison.hpp"

namespace gpunn::training {

std::string summary(const BackendComparison& c) {
  std::string text = "'" + c.checked + "' agreed with '" + c.trained + "' in every op of " + std::to_string(c.steps) +
                     (c.steps == 1 ? " step" : " steps");
  text += c.op.empty() ? ", bit for bit"
                       : "; at most " + ops::number_text(c.op_error) + " of what rounding allows, in " + c.op;
  text += c.parameter.empty() ? "; the parameters were equal after each step"
                              : "; after one step from equal parameters at most " +
                                    ops::number_text(c.parameter_difference) + " apart, in " + c.parameter;
  return text;
}

}  // namespace gpunn::training
