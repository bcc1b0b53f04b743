// An ONNX file as the model of an experiment.
#pragma once

#include <gpunn/model_spec.hpp>

#include "config/diagnostics.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

// Whether an experiment's `model` names an ONNX file.
bool names_onnx_model(const YamlNode& node);

// The layers of the file. It has one parameter, `classes`: how many outputs its last layer with weights is to have.
ModelSpec read_onnx_model(const YamlNode& node, Diagnostics& diagnostics);

}  // namespace gpunn::config
