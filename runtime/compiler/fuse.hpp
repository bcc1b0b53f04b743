#pragma once

#include "compiler/provider.hpp"

namespace gpunn::compiler {

// Replaces chains of core ops by the composite that a plugin offers: CONV2D or MATMUL with BIAS_ADD and RELU,
// RELU_BACKWARD with BIAS_BACKWARD. A composite is taken only from a plugin at least as high in the chain as those that
// serve its parts, so that a base's fused kernel never hides an overlay's own. Where layouts are chosen later, an op
// counts as served by the highest plugin that serves it in any.
enum class ImageLayouts { packed, chosen_later };
void fuse(graph::Graph& graph, const Provider& provider, ImageLayouts layouts = ImageLayouts::packed);

}  // namespace gpunn::compiler
