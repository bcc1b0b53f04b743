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

// The parameters that a model is evaluated with: those that training made, or their average where it kept one.
const std::vector<storage::StoredTensor>& evaluated_parameters(const storage::Checkpoint& checkpoint);

// These and the buffers.
std::vector<storage::StoredTensor> model_tensors(const storage::Checkpoint& checkpoint);

// Opens a run folder (its best.h5, else last.h5) or a checkpoint file with its parameters and its data set, ready to
// evaluate. Announces a data set used in place of another, and other rows than those of the training. Throws
// Error(usage) where the data's samples or classes are not the model's.
std::unique_ptr<Session> open_trained(const TrainedModel& model, TrainingListener* listener);

}  // namespace gpunn::training
