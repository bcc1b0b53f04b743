#pragma once

#include "tasks/task.hpp"

namespace gpunn::tasks {

// A task whose rows have a target f32[outputs]: one number for each output of the model.
class TargetTask : public Task {
 public:
  void require_output(const graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs) const override;
  graph::ValueId add_training_loss(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs,
                                   const Batch& batch) const override;
  graph::ValueId add_evaluation_loss(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs,
                                     const Batch& batch) const override;
  graph::ValueId add_scores(graph::Graph& g, const TaskContext& context, const ModelOutputs& outputs) const override;
};

}  // namespace gpunn::tasks
