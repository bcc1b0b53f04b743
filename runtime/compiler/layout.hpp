#pragma once

#include "compiler/provider.hpp"
#include "graph/graph.hpp"

namespace gpunn::compiler {

// Stores images channels-last where that makes the program faster: by the measured times of kernels and of copies,
// where there are some; otherwise an op is run on such if its plugin gives it a higher score so, or a higher plugin
// serves it only so, and an op to which both are alike is run on whatever needs fewer copies. Between two ops of
// different layouts a COPY converts; a COPY that was there anyway, to another dtype, does both. What is bound by name,
// has views or is written more than once stays packed.
void choose_layouts(graph::Graph& graph, const Offers& offers);

// Whether a tensor of the op has images, whose layout may be another.
bool has_images(const graph::OpSignature& signature);
// The op with all its images in this layout.
graph::OpSignature in_layout(graph::OpSignature signature, Layout layout);

}  // namespace gpunn::compiler
