#pragma once

#include <gpunn/training.hpp>

#include <filesystem>
#include <memory>

#include "training/session.hpp"

namespace gpunn::training {

// A run folder's best.h5, else its last.h5; a file is itself. Throws Error(missing) where the folder has neither.
std::filesystem::path checkpoint_file(const std::filesystem::path& path);

// Opens a run folder (its best.h5, else last.h5) or a checkpoint file with its parameters, ready to evaluate. Announces
// a data set used in place of another.
std::unique_ptr<Session> open_trained(const TrainedModel& model, TrainingListener* listener);

}  // namespace gpunn::training
