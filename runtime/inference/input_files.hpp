#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/model_info.hpp>

#include <filesystem>
#include <vector>

#include "inference/sample_files.hpp"

namespace gpunn::inference {

// The rows of a table for a model with several inputs: a column for each image, with the name of the input, names its
// file, of an only image also the first column; numbers have the columns of their names, or INPUT.0, INPUT.1, ...
// Images lie beneath the table's folder, else beneath data.path. Throws Error, with the line.
std::vector<FileSample> samples_in_table(const std::filesystem::path& file, const ModelInfo& info,
                                         const DataConfig& data);

// The rows of an .npz file with an array [rows, ...] for each input of a model, by its name; the only input takes an
// only array whatever its name. An array with the name of the target has the classes. Throws Error(usage) if arrays are
// not the model's.
std::vector<FileSample> samples_in_npz(const std::filesystem::path& file, const ModelInfo& info);

}  // namespace gpunn::inference
