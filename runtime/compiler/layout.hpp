#pragma once

#include "compiler/provider.hpp"
#include "graph/graph.hpp"

namespace gpunn::compiler {

// Stores images channels-last where kernels like it: an op whose plugin gives channels-last images a higher score than
// packed ones, whose kernel was timed and is a quarter faster on them, or which a higher plugin serves only so, is run
// on such. So is an op that reads what another wrote
// so, where the same plugin serves both at the same score. Between two ops of different layouts a COPY converts; a
// COPY that was there anyway, to another dtype, does both. What is bound by name, has views or is written more than
// once stays packed.
void choose_layouts(graph::Graph& graph, const Offers& offers);

// Whether a tensor of the op has images, whose layout may be another.
bool has_images(const graph::OpSignature& signature);
// The op with all its images in this layout.
graph::OpSignature in_layout(graph::OpSignature signature, Layout layout);

}  // namespace gpunn::compiler
