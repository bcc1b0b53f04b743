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

// An input by the name that the file has for it, and the type of one row.
struct ImportedInput {
  std::string name;
  TensorType sample;  // integers and truth values: as i32, i64 or u8
};

struct ImportedModel {
  ModelSpec model;
  std::vector<ImportedInput> inputs;  // those that an output depends on, in the file's order
  std::vector<std::string> outputs;
  bool has_open_sizes = false;  // besides that of the batch: the layers are those for these samples
  std::vector<ImportedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Whether a path is to be read as ONNX: by its ending.
bool is_onnx(const std::filesystem::path& file);

// Sizes as "3,64,64" or "[3, 64, 64]"; "n" stands for what the file says. Throws Error(usage) for another text.
std::vector<int64_t> read_input_shape(std::string_view text);

// The metadata of gpunn's own files name the shape of a sample by this key: "[3, 224, 224]".
inline constexpr const char* kSampleKey = "sample";
// And by this key the output that the task makes of the first one.
inline constexpr const char* kPredictionsKey = "predictions";

struct ImportOptions {
  // Sizes of an input's dimensions, for those that the file leaves open; 0: as the file says. Without the first one if
  // there is one less than the input has dimensions. Of several inputs, those with as many dimensions take them.
  std::vector<int64_t> input_shape = {};
  // Rows and columns, if the graph takes images [C, H, W] of open sizes; by default those of kSampleKey.
  std::vector<int64_t> image_size = {};
  int64_t computed = int64_t{1} << 28;  // most elements of constants that are computed, all of them together
};

// Reads a network. The first dimension of an input is the batch if the file leaves its size open. If it fixes all
// sizes, and each row can be computed by itself, it is the batch too. Otherwise all of an input is one sample. Throws
// Error: what read_file_model() throws; and, with all nodes that no layer can stand for at once, Error(usage).
ImportedModel import_onnx(const std::filesystem::path& file, const ImportOptions& options = {});

}  // namespace gpunn::interchange
