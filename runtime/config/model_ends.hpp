// The inputs and outputs that a model names.
#pragma once

#include <gpunn/model_spec.hpp>

#include <vector>

#include "config/diagnostics.hpp"
#include "config/entry_values.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

// An output whose layer is a name that stands in a file: of a layer, or of a block for what it gives.
struct PlacedOutput {
  OutputSpec output;
  SourceLocation where;
};

// The key `input`: the shape of the only input; or `inputs`: a map of names, each with a shape, `data` for the shape of
// the data, or {shape, type}. Without either one input, "input", of the data's shape.
std::vector<InputSpec> read_inputs(const YamlNode& model, const ParameterValues& parameters, Diagnostics& diagnostics);

// The key `outputs`: names of layers, or a map of names and layers. Empty: the last layer.
std::vector<PlacedOutput> read_outputs(const YamlNode& model, const ParameterValues& parameters,
                                       Diagnostics& diagnostics);

// "[3, 32, 32]", "data", or "{shape: [16], type: i32}", as read_inputs() reads it.
std::string input_text(const InputSpec& input);

}  // namespace gpunn::config
