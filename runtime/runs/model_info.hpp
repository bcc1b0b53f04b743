#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/model_info.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "storage/checkpoint.hpp"

namespace gpunn::training {

// About a model that is trained on this data set, as load_for() returned it.
ModelInfo model_info(const Experiment& experiment, const Dataset& dataset);

// The description in a checkpoint. Format version 1 has none: the data set is then read, and must exist.
ModelInfo model_info(const storage::Checkpoint& checkpoint, const Experiment& experiment,
                     const std::filesystem::path& file);

// The experiment of a checkpoint, with the normalisation that its model was trained with, since the present data may
// have another mean. An override of data.mean or data.stddev has priority.
Experiment experiment_of(const storage::Checkpoint& checkpoint, const std::filesystem::path& file,
                         const std::vector<Override>& overrides = {});

// Gives the data set the scale of the targets that the model has learnt, or none if it has learnt them as they are. The
// data set's own may be another. Inputs but the first, which experiment_of() is for, get the model's normalisation.
void take_scales(const storage::Checkpoint& checkpoint, Dataset& dataset);

// Throws Error(usage), with the difference, if the data set's classes or samples are not the model's.
void require_data_of(const ModelInfo& model, const Dataset& dataset);

// For a training that continues from a checkpoint: throws like require_data_of(), and if the number of training rows
// differs. Returns a warning if the rows are others, else an empty text.
std::string resumed_data_notice(const storage::Checkpoint& checkpoint, const Dataset& dataset);

// For an evaluation: a note if the evaluated rows are not those of the training, else empty.
std::string evaluated_data_notice(const storage::Checkpoint& checkpoint, const Dataset& dataset);

}  // namespace gpunn::training
