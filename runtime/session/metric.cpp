#include "session/metric.hpp"

namespace gpunn::training {

namespace {

constexpr std::string_view kOfTraining = "train_";

}  // namespace

double value_of(std::string_view monitor, const EpochReport& epoch) {
  if (monitor == "loss") return epoch.evaluation.loss;
  if (!monitor.starts_with(kOfTraining)) return epoch.evaluation.scores.value(monitor);
  monitor.remove_prefix(kOfTraining.size());
  return monitor == "loss" ? epoch.train_loss : epoch.train_scores.value(monitor);
}

}  // namespace gpunn::training
