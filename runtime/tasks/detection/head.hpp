#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/layer_table.hpp"
#include "graph/expressions.hpp"
#include "graph/graph.hpp"
#include "tasks/task.hpp"

namespace gpunn::tasks {

// A map of a pyramid, and how many pixels of the image one of its own is.
struct DetectionLevel {
  int64_t rows = 0, columns = 0;
  double stride = 1;
};

// Which of the boxes found are kept, as NON_MAXIMUM_SUPPRESSION does it.
struct SuppressionRule {
  double overlap = 0.6, least_score = 0.05;
  int64_t most = 100;
};

// What the output of a detector's last layer means: which answer learns which box, what it costs to be wrong, and how
// boxes are made of it. A value of this type is what a detector's kind is: FCOS, SSD.
class DetectionHead {
 public:
  DetectionHead(SuppressionRule rule, int64_t classes) : rule_(rule), classes_(classes) {}
  virtual ~DetectionHead() = default;
  const SuppressionRule& rule() const { return rule_; }
  int64_t classes() const { return classes_; }

  // The boxes that the output [N, P, numbers] stands for, f32 [N, P, 4], and their scores by class, f32 [N, P,
  // classes].
  virtual graph::ValueId add_boxes(graph::Graph& g, graph::ValueId output) const = 0;
  virtual graph::ValueId add_scores(graph::Graph& g, graph::ValueId output) const = 0;
  // Each row's loss, f32 [N], divided by the number of answers that have a box: a row's mean over the batch, or where
  // `by_row` is set, its own. `targets` are f32 [N, boxes, kBoxNumbers].
  virtual graph::ValueId add_loss(graph::Graph& g, const TaskContext& context, graph::ValueId output,
                                  graph::ValueId targets, bool by_row) const = 0;

  // The boxes that are found, f32 [N, most * 6], as NON_MAXIMUM_SUPPRESSION gives them.
  virtual graph::ValueId add_detections(graph::Graph& g, graph::ValueId output) const;

 private:
  SuppressionRule rule_;
  int64_t classes_;
};

// Throws ConfigError where the model ends in no layer that answers with boxes, with fewer classes than the data has, or
// where the loss is not for that layer.
std::unique_ptr<DetectionHead> detection_head(const graph::Graph& g, const TaskContext& context,
                                              const ModelOutputs& outputs);

// Whether a detector may end in a layer of this type.
bool is_detection_head(std::string_view layer);

// What a kind of detector is made from.
struct HeadInputs {
  const LossConfig& loss;
  const config::LayerArguments& arguments;
  std::vector<Shape> maps;  // what the layer takes, with the batch
  SuppressionRule rule;

  // The maps and the layer's `strides`.
  std::vector<DetectionLevel> levels() const;
};

// A kind of detector, by the layer that it ends in.
struct HeadKind {
  std::string_view layer, example;  // example: a model; empty: there is none to begin with
  std::unique_ptr<DetectionHead> (*make)(const HeadInputs& inputs);
  // What is wrong with the loss for this layer, and what to do; empty: nothing.
  std::string (*refuse)(const LossConfig& loss, const config::LayerArguments& arguments);
};
HeadKind fcos_kind();
HeadKind ssd_kind();
HeadKind found_kind();  // of a layer that has sorted out the boxes itself, as in a detector from ONNX

// --- What kinds share ---

graph::ValueId concat(graph::Expressions& e, const std::vector<graph::ValueId>& parts, int32_t axis);
// By how many of x[N,P] a row's loss is divided, at least one: the row's own sum, or the mean over the batch of all
// ranks.
graph::ValueId shared_count(graph::Expressions& e, const TaskContext& context, graph::ValueId x, bool by_row);

}  // namespace gpunn::tasks
