#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/model_info.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "storage/checkpoint.hpp"

namespace gpunn::training {

// The names of all classes, labels or numbers to learn; what the data set has no name for is called by its number.
std::vector<std::string> output_names(const Dataset& dataset);

// Of a model that is trained on this data set, as load_for() gave it.
ModelInfo model_info(const Experiment& experiment, const Dataset& dataset);

// What a checkpoint says. One of format version 1 does not: its data set is read, which must then be there.
ModelInfo model_info(const storage::Checkpoint& checkpoint, const Experiment& experiment,
                     const std::filesystem::path& file);

// The experiment of a checkpoint, with the normalisation that its model was trained with: the data of today may have
// another mean. An override of data.mean or data.stddev stands.
Experiment experiment_of(const storage::Checkpoint& checkpoint, const std::filesystem::path& file,
                         const std::vector<Override>& overrides = {});

// Gives the data set the scale of the targets that the model has learnt: its own may be another by now.
void take_target_scale(const storage::Checkpoint& checkpoint, Dataset& dataset);

// Throws Error(usage) telling how the data set's classes or samples differ from the model's, where they do.
void require_data_of(const ModelInfo& model, const Dataset& dataset);

// For a training that goes on from a checkpoint: throws as require_data_of(), and where the training rows are not as
// many. A warning where they are other rows; else empty.
std::string resumed_data_notice(const storage::Checkpoint& checkpoint, const Dataset& dataset);

// For an evaluation: a note where the rows that are evaluated are not those that the training knew; else empty.
std::string evaluated_data_notice(const storage::Checkpoint& checkpoint, const Dataset& dataset);

}  // namespace gpunn::training
