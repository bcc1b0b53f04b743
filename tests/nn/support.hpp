// What the tests of nn/ share.
#pragma once

#include <gpunn/experiment.hpp>

#include <string>

#include "nn/model.hpp"

namespace nn_test {

// The model of a YAML list of layers, read as a user's is. Layer i of the list is in line i + 3 of "m".
inline gpunn::ModelSpec model_of(const std::string& layers, const std::string& head = "") {
  return gpunn::parse_experiment("data: points\nmodel: {" + head + "layers: [\n" + layers + "]}\n", "m").model;
}

inline gpunn::ModelSpec shipped(const std::string& name, const std::vector<gpunn::Override>& overrides = {}) {
  return gpunn::load_experiment(std::string(GPUNN_SOURCE_DIR) + "/experiments/" + name + ".yaml", overrides).model;
}

// A graph with the model on samples of a shape, as the trainer builds it.
struct Built {
  gpunn::graph::Graph graph;
  gpunn::graph::ValueId x = 0, y = 0, step = 0;
  std::vector<gpunn::nn::Parameter> parameters, buffers;

  Built(const gpunn::ModelSpec& model, const gpunn::Shape& sample, bool training, int64_t batch = 4) {
    using namespace gpunn;
    parameters = nn::model_parameters(model, sample);
    Shape shape = sample;
    shape.insert(shape.begin(), batch);
    x = graph.add_value("x", {DType::f32, shape}, graph::Storage::arena);
    step = graph.add_value("step", {DType::i64, {}}, graph::Storage::state);
    std::vector<graph::ValueId> values;
    for (const nn::Parameter& parameter : parameters) {
      values.push_back(graph.add_value(parameter.name, {DType::f32, parameter.shape}, graph::Storage::parameters));
    }
    buffers = nn::model_buffers(model, sample);
    nn::ForwardOptions options{.training = training, .seed = 5, .step = step};
    for (const nn::Parameter& buffer : buffers) {
      options.buffers.push_back(graph.add_value(buffer.name, {DType::f32, buffer.shape}, graph::Storage::state));
    }
    y = nn::build_forward(graph, model, {{.value = x}}, values, options).front();
  }

  std::vector<int32_t> ops() const {
    std::vector<int32_t> result;
    for (const auto& node : graph.nodes()) result.push_back(node.op);
    return result;
  }
};

}  // namespace nn_test
