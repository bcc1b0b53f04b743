#pragma once

#include <gpunn/training.hpp>

#include <filesystem>
#include <vector>

#include "storage/checkpoint.hpp"

namespace gpunn::training {

// The best.h5 of a run folder, else its last.h5; a file stands for itself. Throws Error(missing) if the folder has
// neither.
std::filesystem::path checkpoint_file(const std::filesystem::path& path);

// A model with its weights, and the experiment that it is of.
struct TrainedFile {
  std::filesystem::path file;
  storage::Checkpoint checkpoint;
  Experiment experiment;
  bool names_data = true;  // an ONNX file does not tell which data set it is for
};

// Reads a run folder (best.h5, else last.h5), a checkpoint or an ONNX file, in the form of a checkpoint. Throws Error
// if it can't be read. `image_size`, rows and columns, is for an ONNX file that leaves the size of its images open.
TrainedFile read_trained(const std::filesystem::path& path, const std::vector<Override>& overrides = {},
                         const std::vector<int64_t>& image_size = {});

// The parameters that a model is evaluated with: the trained ones, or their average if the training kept one.
const std::vector<storage::StoredTensor>& evaluated_parameters(const storage::Checkpoint& checkpoint);

// The buffers that belong to them. A checkpoint of an earlier version has no average of its buffers, so it has the
// buffers of the last step only.
const std::vector<storage::StoredTensor>& evaluated_buffers(const storage::Checkpoint& checkpoint);

// Both together.
std::vector<storage::StoredTensor> model_tensors(const storage::Checkpoint& checkpoint);

}  // namespace gpunn::training
