#include "tasks/target_task.hpp"

#include <gpunn/ops.h>

#include "tasks/losses.hpp"

namespace gpunn::tasks {

using graph::Graph;
using graph::ValueId;

void TargetTask::require_output(const Graph& g, const TaskContext& c, const ModelOutputs& outputs) const {
  require_outputs(g, c.experiment, outputs.last, c.outputs, target());
}

ValueId TargetTask::add_training_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs,
                                      const Batch& batch) const {
  require_output(g, c, outputs);
  return add_loss_to_target(g, c.experiment.loss, add_loss_input(g, c.experiment, outputs),
                            batch.fields.at(kTargetField));
}

ValueId TargetTask::add_evaluation_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs,
                                        const Batch& batch) const {
  return add_training_loss(g, c, outputs, batch);
}

ValueId TargetTask::add_scores(Graph& /*g*/, const TaskContext& /*context*/, const ModelOutputs& outputs) const {
  return outputs.last;
}

}  // namespace gpunn::tasks
