#include "session/training_length.hpp"

#include <algorithm>

#include "data/described.hpp"
#include "program/programs.hpp"

namespace gpunn::training {

namespace {

// 80 MB of learning rates.
constexpr int64_t kMostSteps = 20'000'000;

// Without rows to evaluate.
void require_training_monitor(const Experiment& experiment) {
  const auto require = [](const std::string& key, const std::string& monitor) {
    if (monitor.starts_with("train_")) return;
    throw Error(key + " " + monitor +
                    " is measured on samples that are put aside, and there are none: give validation samples, or "
                    "watch train_" +
                    monitor,
                ExitCode::usage);
  };
  if (experiment.early_stopping) require("early_stopping.monitor", experiment.early_stopping->monitor);
  const auto* plateau = std::get_if<ReduceOnPlateau>(&experiment.schedule.kind);
  if (plateau != nullptr) require("schedule.monitor", plateau->monitor);
}

}  // namespace

Origin origin_of(const storage::Checkpoint& checkpoint) {
  const auto counter = [&](const char* name) {
    const auto found = checkpoint.counters.find(name);
    return found == checkpoint.counters.end() ? int64_t{0} : std::max<int64_t>(found->second, 0);
  };
  return {.step = counter("step"), .epoch = counter("epoch"), .in_epoch = counter("sampler_position")};
}

TrainingLength training_length(const Experiment& experiment, const Dataset& dataset, const Origin& origin) {
  const auto fail = [&](const std::string& message) {
    throw Error(experiment.file.string() + ": " + message, ExitCode::usage);
  };
  if (dataset.train.rows() == 0) fail(data::described(dataset) + " has no training samples");
  if (dataset.test.rows() == 0 && !dataset.unwatched) {
    fail(data::described(dataset) + " has no test samples; " + tasks::find(experiment.task).test_data_advice());
  }
  const int64_t rows_of_step = experiment.data.batch_size * experiment.accumulate;
  if (experiment.data.batch_size <= dataset.train.rows() && rows_of_step > dataset.train.rows()) {
    fail("training.accumulate " + std::to_string(experiment.accumulate) + " batches are " +
         std::to_string(rows_of_step) + " samples, more than the " + std::to_string(dataset.train.rows()) +
         " training samples of '" + dataset.name + "'; choose fewer or a smaller data.batch_size");
  }
  if (experiment.data.batch_size > dataset.train.rows()) {
    fail("data.batch_size " + std::to_string(experiment.data.batch_size) + " is larger than the " +
         std::to_string(dataset.train.rows()) + " training samples of '" + dataset.name + "'; choose a smaller one");
  }
  if (dataset.batches != nullptr && experiment.accumulate > 1) {
    fail("training.accumulate " + std::to_string(experiment.accumulate) +
         " is for arrays; of batches that come while training each is a step: bring larger ones, or leave it out");
  }
  if (dataset.test.rows() == 0) require_training_monitor(experiment);
  TrainingLength length;
  const SplitType train{.name = "train", .samples = dataset.train.samples, .brought = dataset.batches != nullptr};
  length.steps_per_epoch = training_sampling(experiment, train).steps_per_epoch();
  length.first = origin.step;
  length.shift = origin.epoch * length.steps_per_epoch + origin.in_epoch - origin.step;
  length.steps = std::max<int64_t>(experiment.epochs * length.steps_per_epoch - length.shift, 0);
  if (experiment.max_steps > 0) length.steps = std::min(length.steps, experiment.max_steps);
  if (length.steps > kMostSteps) {
    fail(std::to_string(experiment.epochs) + " epochs of " + std::to_string(length.steps_per_epoch) +
         " steps are more than the " + std::to_string(kMostSteps) +
         " steps that a learning-rate table holds; lower training.epochs or set training.max_steps");
  }
  return length;
}

}  // namespace gpunn::training
