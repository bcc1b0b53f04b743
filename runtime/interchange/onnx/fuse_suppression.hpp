// The nodes in which an exported detector sorts out its boxes, as one node.
#pragma once

#include "interchange/onnx/file_model.hpp"

namespace gpunn::interchange {

// Puts a node "NonMaximumSuppression" of kFusedDomain (node_walk.hpp) in place of each NonMaxSuppression and the nodes
// that pick the best boxes behind it, exactly as `gpunn export` writes them: boxes [N, P, 4] and scores [N, P, C] to
// [N, most, 6]. Where the graph's three outputs are parts of that, the boxes, scores and labels, it becomes the only
// output.
void fuse_suppression(FileModel& model);

}  // namespace gpunn::interchange
