#include "tasks/accumulator.hpp"

#include <gpunn/error.hpp>

namespace gpunn::tasks {

std::span<const double> Accumulated::of(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw Error("no accumulator '" + std::string(name) + "' was kept: the metric that reads it must name it");
  }
  return found->second;
}

double Accumulated::mean_loss() const {
  const double rows = total(Total::rows);
  return rows > 0 ? total(Total::loss) / rows : 0;
}

}  // namespace gpunn::tasks
