#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/export.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpunn {

// The contents of an exported ONNX file.
struct OnnxExportOptions {
  int64_t opset = 18;               // 13 to 21
  bool raw_input = false;           // samples as the data set has them (u8 of images): the graph normalises them
  bool with_preprocessing = false;  // one picture u8[height, width, channels] of any size: the graph does all that
                                    // predict() does to a file's pixels
  bool fold_batch_norm = false;     // into the layer in front, where that is linear
  bool external_data = false;       // weights in FILE.data beside the file; so in any case above 2 GB
  bool operator==(const OnnxExportOptions&) const = default;
};

// Which files were written, and what is in them.
struct OnnxExportReport {
  std::filesystem::path file = {};
  std::filesystem::path data = {};  // empty: the file has the weights
  int64_t opset = 0, ir_version = 0;
  int64_t nodes = 0, tensors = 0, numbers = 0;  // tensors and numbers of weights and constants
  std::vector<std::string> warnings = {};       // columns that the file's f32 rounds too coarsely
};

// Writes a run folder (its best.h5, else last.h5), a checkpoint or an ONNX file as an ONNX model that takes any
// number of rows and computes what Model::run does. The override model.input_shape has sizes that an ONNX file leaves
// open. Throws Error: usage for another ending or opset or a folder that is
// not there, missing where this gpunn was built without protobuf, failed where a file can't be written.
GPUNN_API OnnxExportReport export_onnx(const std::filesystem::path& model, const std::filesystem::path& file,
                                       const OnnxExportOptions& options = {},
                                       const std::vector<Override>& overrides = {});

}  // namespace gpunn
