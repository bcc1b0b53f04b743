// ONNX in: a file's graph as layers of a model, and its weights.
#pragma once

#include <gpunn/model_spec.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
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
  Shape sample;                 // one row of the input
  bool has_open_sizes = false;  // besides that of the batch: the layers are those for `sample`
  std::vector<ImportedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Whether a path is to be read as ONNX: by its ending.
bool is_onnx(const std::filesystem::path& file);

// What a file may ask for.
struct ImportLimits {
  int64_t computed = int64_t{1} << 28;  // elements of constants that are computed, all of them together
  // Rows and columns, if the graph takes images [C, H, W] of open sizes; by default those of kSampleKey.
  std::vector<int64_t> image_size = {};
};

// The metadata of gpunn's own files name the shape of a sample by this key: "[3, 224, 224]".
inline constexpr const char* kSampleKey = "sample";

// Reads a network of one input and one output, whose first dimension is the batch. Throws Error: what
// read_file_model() throws; and, with all nodes that no layer can stand for at once, Error(usage).
ImportedModel import_onnx(const std::filesystem::path& file, const ImportLimits& limits = {});

}  // namespace gpunn::interchange
