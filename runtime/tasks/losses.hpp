#pragma once

#include <gpunn/experiment.hpp>

#include <cstdint>
#include <string>

#include "graph/graph.hpp"
#include "tasks/batch.hpp"

namespace gpunn::tasks {

// The loss of each row of an output f32[N, K] against a target of the same shape, f32[N]: of the kinds that take one,
// such as mean_squared_error.
graph::ValueId add_loss_to_target(graph::Graph& g, const LossConfig& loss, graph::ValueId output,
                                  graph::ValueId target);

// The loss's input, f32: the model's last output. cross_entropy contains a softmax and binary_cross_entropy a sigmoid:
// if a model ends in that layer, they take the layer's input.
graph::ValueId add_loss_input(graph::Graph& g, const Experiment& experiment, const ModelOutputs& outputs);
// Whether the model ends in a layer that the loss contains.
bool ends_in_part_of_loss(const Experiment& experiment);

// Its name in experiments.
std::string name_of(LossKind kind);

// Throws ConfigError if the loss has weights for another number of classes. `data` is the name of the data set.
void require_class_weights(const LossConfig& loss, int64_t classes, const std::string& data);

// The data of an experiment for messages: "'csv' (data/iris.csv)".
std::string data_text(const DataConfig& data);

// Throws ConfigError, at the last layer, if the output is not f32[N, outputs]: the message names the loss, the layer
// and the data. `outputs_are` names the things in the data that the outputs stand for.
void require_outputs(const graph::Graph& g, const Experiment& experiment, graph::ValueId output, int64_t outputs,
                     std::string_view outputs_are);

}  // namespace gpunn::tasks
