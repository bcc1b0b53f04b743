#include "training/notices.hpp"

#include "data/standardise.hpp"
#include "training/evaluation_part.hpp"

namespace gpunn::training {

std::string fallback_notice(const Dataset& dataset) {
  if (dataset.fallback_of.empty()) return "";
  return "WARNING: data set '" + dataset.fallback_of + "' was not found: '" + dataset.name +
         "' is used instead, as data.offline_fallback allows. Its figures are not figures of '" + dataset.fallback_of +
         "'.";
}

std::string schedule_notice(const Schedule& schedule) {
  std::string text;
  for (const std::string& warning : schedule.warnings()) text = joined(text, "WARNING: " + warning);
  return text;
}

std::string moving_statistics_notice(const Experiment& experiment, const ParameterLayout& parameters,
                                     const ParameterLayout& buffers) {
  const std::vector<std::string> norms =
      frozen_norms(experiment, parameters.parameters, parameters.rules, buffers.parameters);
  if (norms.empty() || experiment.freeze_statistics) return "";
  const std::string which =
      norms.size() == 1 ? "the batch norm " + norms.front()
                        : std::to_string(norms.size()) + " batch norms (" + norms.front() + " to " + norms.back() + ")";
  return "note: training.freeze holds weight and bias of " + which +
         ", but the running statistics still follow the batches; training.freeze_statistics: true keeps them";
}

std::string data_text(const Dataset& dataset) {
  const auto outputs = [&] {
    const std::string count = std::to_string(dataset.classes);
    switch (dataset.targets) {
      case TargetKind::numbers:
        return count + (dataset.classes == 1 ? " target" : " targets");
      case TargetKind::labels:
        return count + " labels";
      case TargetKind::image:
        return "for images " + std::to_string(dataset.scale) + " times as large";
      case TargetKind::boxes:
        return "boxes of " + count + " classes";
      case TargetKind::one_class:
        break;
    }
    return count + " classes";
  };
  const TensorType sample = data::device_type({dataset.train.samples.dtype, sample_shape(dataset)});
  return dataset.name + ": " + std::to_string(dataset.train.rows()) + " samples to train on, " +
         std::to_string(dataset.test.rows()) + " to evaluate on, each " + to_string(sample) + ", " + outputs() +
         (dataset.from_registry ? "; sizes from the registry, no data was read" : "");
}

std::string joined(const std::string& one, const std::string& other) {
  return one + (one.empty() || other.empty() ? "" : "\n") + other;
}

}  // namespace gpunn::training
