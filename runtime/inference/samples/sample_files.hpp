#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/model_info.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gpunn::inference {

// A row of an input: an image that is still in its file, or values that the model takes.
struct InputRow {
  std::filesystem::path image = {};  // empty: `values` has them
  std::vector<std::byte> values = {};
  DType dtype = DType::u8;  // of the values
};

// A sample that is to be predicted.
struct FileSample {
  std::string source;
  std::vector<InputRow> inputs = {};  // in the order of the model's
  std::optional<int64_t> label = {};  // where it is known
  std::string image_id = {};          // Prediction's
  int64_t height = 0, width = 0;      // of the image that the first input's values were made of; 0: unknown
  const std::filesystem::path& image() const { return inputs.front().image; }  // of the first input
};

// The samples in the files, in order: an image in each, the images in a folder, the lines of a CSV file, or the files
// that match a pattern with '*', '?' and '[...]'. Throws Error: missing if a file does not exist, usage if the model
// takes other samples.
std::vector<FileSample> samples_in(const std::vector<std::filesystem::path>& inputs, const ModelInfo& info,
                                   const DataConfig& data);

}  // namespace gpunn::inference
