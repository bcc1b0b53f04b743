#pragma once

#include <gpunn/training.hpp>

#include <memory>

#include "session/session.hpp"

namespace gpunn::training {

// Opens what read_trained() returns with its parameters and its data set, ready to evaluate. Announces a data set that
// replaces another, and rows that are not those of the training. Throws Error(usage) if the data's samples or classes
// are not the model's.
std::unique_ptr<Session> open_trained(const TrainedModel& model, TrainingListener* listener);

}  // namespace gpunn::training
