#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace gpunn {

// A layer's parameter, parsed but not yet checked against the layer's table.
struct LayerParameter {
  std::string name;
  std::vector<std::string> values;  // one for a scalar
  SourceLocation where;
};

// A layer of a model file, checked, with the place where it is written.
struct LayerSpec {
  std::string type;
  std::string name;               // given, or "<type><ordinal>"
  std::vector<std::string> from;  // names of the inputs; empty: the previous layer
  std::vector<LayerParameter> parameters;
  SourceLocation where;
  std::string origin = {};  // appended to messages about a layer of a block: where the block is used
};

// A model file after parameters are inserted, repeats unrolled and blocks expanded.
struct ModelSpec {
  std::filesystem::path file;
  std::string name;
  std::map<std::string, std::string> parameters;
  std::vector<int64_t> input;        // [C, H, W] or [features]; empty: the data's
  std::vector<int64_t> input_shape;  // as given for an ONNX file whose sizes are open; empty: the file's
  std::vector<LayerSpec> layers;
  std::string text;  // the file as read, kept in checkpoints
};

}  // namespace gpunn
