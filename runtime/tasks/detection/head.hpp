#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"
#include "tasks/task.hpp"

namespace gpunn::tasks {

// A map of a pyramid.
struct DetectionLevel {
  int64_t rows = 0, columns = 0;
  double stride = 1;
};

// The last layer of a detector: what its output means, and how boxes are made of it.
struct DetectionHead {
  std::vector<DetectionLevel> levels;
  int64_t classes = 0, points = 0;
  double radius = 1.5, overlap = 0.6, least_score = 0.05;
  int64_t most = 100;
};

// Throws ConfigError where the model ends in no layer that answers with boxes, or with fewer classes than the data has.
DetectionHead detection_head(const graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs);

// The points of all maps, f32 [points, 3], as GRID_POINTS gives them.
graph::ValueId add_points(graph::Graph& g, const DetectionHead& head);

// The boxes that the output [N, points, 5 + classes] stands for: f32 [N, points, 4].
graph::ValueId add_boxes(graph::Graph& g, const DetectionHead& head, graph::ValueId output, graph::ValueId points);

// Each row's loss, f32 [N]: the focal loss of the classes, the generalised overlap of boxes weighed by centerness, and
// the cross-entropy of the centerness; divided by the number of points that have a box: a row's mean over the batch, or
// where `by_row` is set, its own. `targets` are f32 [N, boxes * kBoxNumbers].
graph::ValueId add_detection_loss(graph::Graph& g, const TaskContext& context, const DetectionHead& head,
                                  graph::ValueId output, graph::ValueId targets, bool by_row);

// The boxes that are found, f32 [N, most * 6], as NON_MAXIMUM_SUPPRESSION gives them.
graph::ValueId add_detections(graph::Graph& g, const DetectionHead& head, graph::ValueId output);

}  // namespace gpunn::tasks
