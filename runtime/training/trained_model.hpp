#pragma once

#include <gpunn/training.hpp>

#include <filesystem>
#include <memory>
#include <vector>

#include "storage/checkpoint.hpp"
#include "training/session.hpp"

namespace gpunn::training {

// A run folder's best.h5, else its last.h5; a file is itself. Throws Error(missing) where the folder has neither.
std::filesystem::path checkpoint_file(const std::filesystem::path& path);

// The model of a checkpoint as it is evaluated: its parameters, or their average where training kept one, and its
// buffers.
std::vector<storage::StoredTensor> model_tensors(storage::Checkpoint checkpoint);

// Opens a run folder (its best.h5, else last.h5) or a checkpoint file with its parameters, ready to evaluate. Announces
// a data set used in place of another.
std::unique_ptr<Session> open_trained(const TrainedModel& model, TrainingListener* listener);

}  // namespace gpunn::training
