#pragma once

#include <gpunn/experiment.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/task.hpp"

namespace gpunn::tasks {

// f32[classes, classes], of has_class_targets().
inline constexpr const char* kClassTargets = "data.targets";

// Whether a training aims at a target for each class, rows of variable kClassTargets, and not at labels alone.
bool has_class_targets(const Experiment& experiment);

// The value of variable kClassTargets: row i is the target of a sample of class i. For cross_entropy it is weight * ((1
// - s) * onehot + s / classes) with the label smoothing s (Szegedy et al., 2016), else onehot. Throws ConfigError if
// there are class weights for another number of classes; `data` names the data set.
std::vector<float> class_target_table(const LossConfig& loss, int64_t classes, const std::string& data);

// The rows of kClassTargets for the labels, f32[N, classes].
graph::ValueId add_class_targets(graph::Graph& g, int64_t classes, graph::ValueId label);

}  // namespace gpunn::tasks
