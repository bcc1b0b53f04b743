#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>

#include "graph/graph.hpp"
#include "program/batch_ops.hpp"
#include "program/programs.hpp"

namespace gpunn::training {

// Throws ConfigError if the data can't be augmented as the experiment asks: its samples are not images, or a crop would
// leave nothing.
void require_augmentable(const Experiment& experiment, const Dataset& dataset);

// Appends the ops that augment a step's batch as the context's experiment asks: other samples, f32[N,C,H,W] as before,
// and with mixup targets to be learnt. Nothing is added where it asks for nothing. What lies outside an image is what a
// raw 0 is normalised to. `draw` counts the batches that random numbers are drawn for.
void add_augmentation(graph::Graph& g, const ProgramContext& context, const SplitType& split, Batch& batch,
                      graph::ValueId step, graph::ValueId draw);

}  // namespace gpunn::training
