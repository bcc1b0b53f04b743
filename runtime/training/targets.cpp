#include "training/targets.hpp"

#include <gpunn/error.hpp>

#include <cstring>
#include <string>

#include "tasks/losses.hpp"
#include "tasks/task.hpp"

namespace gpunn::training {

void require_targets(const Experiment& experiment, const Dataset& dataset) {
  const tasks::Task& task = tasks::find(experiment.task);
  if (task.target_kind() == dataset.targets) return;
  const auto has = [&] {
    const std::string count = std::to_string(dataset.classes);
    switch (dataset.targets) {
      case TargetKind::numbers:
        return count + " numbers a sample";
      case TargetKind::labels:
        return "any of " + count + " labels a sample";
      case TargetKind::one_class:
        break;
    }
    return std::string("a class a sample");
  };
  std::string fitting;
  for (const tasks::Task* other : tasks::all()) {
    if (other->target_kind() == dataset.targets) fitting = other->name();
  }
  throw Error(experiment.file.string() + ": the data set '" + dataset.name + "' has " + has() + ", the task " +
                  experiment.task + " with the loss " + tasks::name_of(experiment.loss.type()) + " learns " +
                  std::string(task.target()) + ", which the last layer '" + experiment.model.layers.back().name +
                  "' gives; set task: " + fitting + ", or choose data with " + std::string(task.target()),
              ExitCode::usage);
}

void scale_targets(Dataset& dataset) {
  if (dataset.target_mean.empty()) return;
  for (Split* part : {&dataset.train, &dataset.validation, &dataset.test}) {
    const auto field = part->fields.find(kTargetField);
    if (field == part->fields.end()) continue;
    std::vector<std::byte>& bytes = field->second.values;
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      const std::size_t column = i % dataset.target_mean.size();
      float value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof(float), sizeof(float));
      const double centred = static_cast<double>(value) - dataset.target_mean[column];
      value = static_cast<float>(centred / dataset.target_stddev[column]);
      std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(float));
    }
  }
}

void to_data_units(std::span<float> values, const std::vector<double>& mean, const std::vector<double>& stddev) {
  for (std::size_t i = 0; !mean.empty() && i < values.size(); ++i) {
    const std::size_t column = i % mean.size();
    values[i] = static_cast<float>(static_cast<double>(values[i]) * stddev[column] + mean[column]);
  }
}

std::vector<float> targets_in_data_units(const Dataset& dataset, const Split& part, int64_t first, int64_t rows) {
  const auto columns = static_cast<std::size_t>(dataset.classes);
  std::vector<float> result(static_cast<std::size_t>(rows) * columns);
  const std::vector<std::byte>& bytes = part.fields.at(kTargetField).values;
  std::memcpy(result.data(), bytes.data() + static_cast<std::size_t>(first) * columns * sizeof(float),
              result.size() * sizeof(float));
  to_data_units(result, dataset.target_mean, dataset.target_stddev);
  return result;
}

}  // namespace gpunn::training
