// The names of Metric.
#include <gpunn/experiment.hpp>

namespace gpunn {

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = {"loss", "accuracy", "top5_accuracy", "train_loss", "train_accuracy"};
  return names;
}

std::string name_of(Metric metric) { return metric_names().at(static_cast<std::size_t>(metric)); }

bool larger_is_better(Metric metric) { return metric != Metric::loss && metric != Metric::train_loss; }

}  // namespace gpunn
