// The nodes in which PyTorch's exporter writes an adaptive average pooling, as one node.
#pragma once

#include "interchange/onnx/file_model.hpp"

namespace gpunn::interchange {

// Where an adaptive pooling's windows are not all alike, or none fits without a remainder, PyTorch's dynamo exporter
// gathers the pixels of all windows: images [N, C, H, W] become [N, C, rows, window rows, columns, window columns] by
// GatherND, with numbers of pixels that the file has. Windows of equal sizes are averaged by ReduceMean. Else Where
// puts zeros behind the smaller ones, the pixels are added one by one, and Div takes the windows' sizes. Puts a node
// "AdaptiveAveragePool" of kFusedDomain (node_walk.hpp) in place of these, if the windows are those of an adaptive
// pooling. Its attributes are the sizes of the images that the file was exported for, and of what is given.
void fuse_adaptive_pooling(FileModel& model);

}  // namespace gpunn::interchange
