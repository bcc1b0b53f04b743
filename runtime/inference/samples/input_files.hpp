#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/model_info.hpp>

#include <filesystem>
#include <vector>

#include "inference/samples/sample_files.hpp"

namespace gpunn::inference {

// The rows of a table for a model with several inputs: a column for each image, with the name of the input, names its
// file, of an only image also the first column; numbers have the columns of their names, or INPUT.0, INPUT.1, ...
// Images lie beneath the table's folder, else beneath data.path. Throws Error, with the line.
std::vector<FileSample> samples_in_table(const std::filesystem::path& file, const ModelInfo& info,
                                         const DataConfig& data);

}  // namespace gpunn::inference
