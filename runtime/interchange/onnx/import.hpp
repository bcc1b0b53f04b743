// ONNX in: a file's graph as layers of a model, and its weights.
#pragma once

#include <gpunn/model_spec.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::interchange {

// Throws Error(missing) where gpunn was built without protobuf, which ONNX files need.
void require_onnx();

struct ImportedTensor {
  std::string name;  // "conv1.weight": of a layer's parameter or buffer
  Shape shape;
  std::shared_ptr<const std::vector<float>> values;
};

struct ImportedModel {
  ModelSpec model;
  std::string input;  // the name that the file has for it
  std::string output;
  Shape sample;  // one row of the input
  std::vector<ImportedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Whether a path is to be read as ONNX: by its ending.
bool is_onnx(const std::filesystem::path& file);

// Sizes as "3,64,64" or "[3, 64, 64]"; "n" stands for what the file says. Throws Error(usage) for another text.
std::vector<int64_t> read_input_shape(std::string_view text);

struct ImportOptions {
  // Sizes of the input's dimensions, for those that the file leaves open; 0: as the file says. Without the first one if
  // there is one less than the input has dimensions.
  std::vector<int64_t> input_shape = {};
  int64_t computed = int64_t{1} << 28;  // most elements of constants that are computed, all of them together
};

// Reads a network of one input and one output. The first dimension of the input is the batch if each of its rows can be
// computed by itself. Otherwise the whole input is one sample, where the file fixes its size. Throws Error: what
// read_file_model() throws; and, with all nodes that no layer can stand for at once, Error(usage).
ImportedModel import_onnx(const std::filesystem::path& file, const ImportOptions& options = {});

}  // namespace gpunn::interchange
