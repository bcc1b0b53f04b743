// What the tasks share whose models make an image of an image.
#pragma once

#include <string>

#include "tasks/task.hpp"

namespace gpunn::tasks {

class ImageTask : public Task {
 public:
  std::string_view target_kind() const override { return "image"; }
  std::string_view output() const override { return "image"; }
  std::string_view target() const override { return "images"; }
  Answers answers() const override {
    return {.outputs = {"image", "image"}, .what = "images", .address = {}, .probabilities = false, .images = true};
  }
  std::optional<Field> imagined_target(const Shape& outputs) const override;
  graph::ValueId add_training_loss(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs,
                                   const Batch& batch) const override;
  graph::ValueId add_evaluation_loss(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs,
                                     const Batch& batch) const override;
  graph::ValueId add_scores(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs) const override;

 protected:
  // Whether the last output is of images with as many values as their targets.
  static bool gives_images(const graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs);
};

}  // namespace gpunn::tasks
