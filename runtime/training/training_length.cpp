#include "training/training_length.hpp"

#include <algorithm>

#include "training/programs.hpp"

namespace gpunn::training {

namespace {

// 80 MB of learning rates.
constexpr int64_t kMostSteps = 20'000'000;

}  // namespace

TrainingLength training_length(const Experiment& experiment, const Dataset& dataset) {
  const auto fail = [&](const std::string& message) {
    throw Error(experiment.file.string() + ": " + message, ExitCode::usage);
  };
  if (dataset.train.rows() == 0) fail("the data set '" + dataset.name + "' has no training samples");
  if (dataset.test.rows() == 0) {
    fail("the data set '" + dataset.name + "' has no test samples in " + dataset.source +
         "; put data.test_fraction: 0.2 to take a fifth of the samples, or say with data.test_path where they are");
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
  TrainingLength length;
  length.steps_per_epoch = training_sampling(experiment, SplitType{"train", dataset.train.samples}).steps_per_epoch();
  length.steps = experiment.epochs * length.steps_per_epoch;
  if (experiment.max_steps > 0) length.steps = std::min(length.steps, experiment.max_steps);
  if (length.steps > kMostSteps) {
    fail(std::to_string(experiment.epochs) + " epochs of " + std::to_string(length.steps_per_epoch) +
         " steps are more than the " + std::to_string(kMostSteps) +
         " steps that a learning-rate table holds; lower training.epochs or set training.max_steps");
  }
  return length;
}

}  // namespace gpunn::training
