// Dynamic loss scaling for trainings in f16. Small gradients would round to 0 there: f16 has 5 bits of exponent. So the
// gradient of the loss is multiplied by a scale, and the sums over the parameters are divided by it. A step whose
// gradients overflow is skipped and halves the scale; 2000 good steps in a row double it. All of it is ops of the step
// program. (Micikevicius et al., 2018; the numbers are those of PyTorch's GradScaler.)
#pragma once

#include <gpunn/experiment.hpp>

#include <cstddef>

#include "graph/graph.hpp"
#include "program/layout.hpp"

namespace gpunn::training {

inline constexpr float kFirstLossScale = 65536;
inline constexpr int64_t kStepsToGrow = 2000;
// Below it not even a gradient of 1 is a normal number of f16. Steps that are skipped there will all be.
inline constexpr double kLeastLossScale = 0x1p-14;

bool scales_loss(const Experiment& experiment);

// The variables, f32 0-d each: counts are exact up to 2^24.
struct LossScaleValues {
  graph::ValueId scale;       // a power of 2
  graph::ValueId good_steps;  // in a row, since the scale last changed
  graph::ValueId skipped;     // steps without an update, of all
};
LossScaleValues add_loss_scale(graph::Graph& graph);

// Divides the flat gradients by the scale. Returns 1, f32 0-d, or 0 where one of them is not finite.
graph::ValueId add_unscaling(graph::Graph& graph, const LossScaleValues& values, graph::ValueId gradients);

// The updates that were done, i64 0-d: what an optimizer counts by.
graph::ValueId add_update_count(graph::Graph& graph, const LossScaleValues& values, graph::ValueId step);

// Has the nodes from `first` on, which update parameters, optimizer states and average, leave these as they were where
// `finite` is 0.
void undo_unless(graph::Graph& graph, const ParameterLayout& layout, std::size_t first, graph::ValueId finite);

// The scale and the counts for the next step.
void add_scale_update(graph::Graph& graph, const LossScaleValues& values, graph::ValueId finite);

}  // namespace gpunn::training
