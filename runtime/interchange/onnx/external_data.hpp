#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/input_file.hpp"

namespace gpunn::interchange {

// The files beside an ONNX file that hold values of its tensors. A model from elsewhere must not make gpunn read other
// files: a path must be relative, without "..", and lead to a file within the model's folder, links followed.
class ExternalData {
 public:
  explicit ExternalData(std::filesystem::path model) : model_(std::move(model)) {}

  // The bytes of a tensor; `keys` are the entries of its external_data. Throws Error where they are not exactly `bytes`
  // within the file.
  std::vector<std::byte> read(const std::string& tensor, const std::map<std::string, std::string>& keys,
                              uint64_t bytes);

 private:
  InputFile& open(const std::string& tensor, const std::string& location);

  std::filesystem::path model_;
  std::map<std::string, std::unique_ptr<InputFile>> files_;
};

}  // namespace gpunn::interchange
