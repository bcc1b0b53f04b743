#pragma once

#include <gpunn/error.hpp>
#include <gpunn/tensor_type.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
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

// An input of a model. A model that has one and does not name it calls it "input".
struct InputSpec {
  std::string name = "input";
  std::vector<int64_t> shape = {};  // of a sample: [C, H, W] or [features]; empty: the data's
  std::optional<DType> dtype = {};  // of the values that the layers take; empty: the data's
  SourceLocation where = {};
};

// An output of a model: what a layer gives.
struct OutputSpec {
  std::string name;
  std::string layer;
};

// A model file after parameters are inserted, repeats unrolled and blocks expanded.
struct ModelSpec {
  std::filesystem::path file;
  std::string name;
  std::map<std::string, std::string> parameters;
  std::vector<InputSpec> inputs = std::vector<InputSpec>(1);  // at least one
  std::vector<int64_t> input_shape;  // as given for an ONNX file whose sizes are open; empty: the file's
  std::vector<LayerSpec> layers;
  std::vector<OutputSpec> outputs;  // empty: the last layer
  std::string text;                 // the file as read, kept in checkpoints

  // The layer of the first output, from which the task learns. `layers` must not be empty.
  const LayerSpec& output_layer() const {
    if (outputs.empty()) return layers.back();
    const auto found = std::find_if(layers.begin(), layers.end(),
                                    [this](const LayerSpec& layer) { return layer.name == outputs.front().layer; });
    return found == layers.end() ? layers.back() : *found;
  }
  // The names that a layer of `layers` takes: its `from`, or the layer before it. The first layer takes the first
  // input.
  std::vector<std::string> sources_of(const LayerSpec& layer) const {
    if (!layer.from.empty()) return layer.from;
    return {&layer == layers.data() ? inputs.front().name : std::prev(&layer)->name};
  }
};

}  // namespace gpunn
