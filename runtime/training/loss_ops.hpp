#pragma once

#include <gpunn/experiment.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "training/batch_ops.hpp"
#include "training/programs.hpp"

namespace gpunn::training {

// Whether the loss may be of a model with one output for two classes: above 0 for class 1.
bool takes_one_output(const Experiment& experiment, int64_t classes);

// Whether a training aims at a target for each class, rows of variable kTargets, and not at labels alone.
bool has_soft_targets(const Experiment& experiment);

// What variable kTargets holds, f32[classes, classes]: row i is the target of a sample of class i. For cross_entropy
// weight * ((1 - s) * onehot + s / classes) with the label smoothing s (Szegedy et al., 2016), else onehot. Throws
// ConfigError where there are class weights for another number of classes; `data` names the data set.
std::vector<float> target_table(const LossConfig& loss, int64_t classes, const std::string& data);

// The rows of kTargets for the labels, f32[N, classes].
graph::ValueId add_targets(graph::Graph& g, const ProgramContext& context, graph::ValueId label);

// The loss of each row as the training minimises it, f32[N]: against the batch's targets where it has some, else as the
// experiment says. Throws ConfigError where the model's output does not suit the loss or the data.
graph::ValueId add_training_loss(graph::Graph& g, const ProgramContext& context, graph::ValueId output,
                                 const Batch& batch);

// The same as evaluations report it: without label smoothing and class weights.
graph::ValueId add_evaluation_loss(graph::Graph& g, const ProgramContext& context, graph::ValueId output,
                                   graph::ValueId label);

// f32[N, classes], of which the largest of a row is the class that the model takes it for: the output itself, or 0 and
// it where it is one for two classes.
graph::ValueId add_class_scores(graph::Graph& g, const ProgramContext& context, graph::ValueId output);

// The op that makes class probabilities f32[N, classes] of the scores. With binary_cross_entropy each class has its
// own, and those of a row sum to 1 only where they are made of one output; with hinge, mean_squared_error and huber
// they are the softmax of outputs that were never trained to be logits.
gpunn_op probabilities_op(const Experiment& experiment, const TensorType& output);

}  // namespace gpunn::training
