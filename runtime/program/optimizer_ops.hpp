#pragma once

#include <gpunn/experiment.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "optim/optimizer/optimizer_rows.hpp"
#include "program/layout.hpp"

namespace gpunn::training {

// "velocity", or "m" and "v", ...: the optimizer's states.
std::vector<OptimizerState> optimizer_states(const OptimizerConfig& config);

// i64[parameters + 1] in storage `data`, ParameterLayout::bounds() of a range: what LARS goes by.
std::string bounds_variable(std::size_t range);

// The inputs and outputs of an update: the flat arrays, the learning rate f32 0-d and the step counter i64 0-d.
struct UpdateValues {
  graph::ValueId parameters, gradients, rate, step;
};

// Whether the norm of the gradients is formed at each step.
bool records_gradient_norm(const Experiment& experiment);

// Changes the gradients before the update: l1, clip_value, clip_norm. Returns their norm before clip_norm, f32 0-d, or
// kNoValue if the norm is not needed.
graph::ValueId add_gradient_bounds(graph::Graph& graph, const Experiment& experiment, const ParameterLayout& layout,
                                   const UpdateValues& values);

// average = decay * average + (1 - decay) * of, for the first `size` elements.
void add_average(graph::Graph& graph, double decay, int64_t size, graph::ValueId average, graph::ValueId of);

// Adds the update of the parameters, and the variables of the optimizer's states.
void add_optimizer(graph::Graph& graph, const OptimizerConfig& config, const ParameterLayout& layout,
                   const UpdateValues& values);

}  // namespace gpunn::training
