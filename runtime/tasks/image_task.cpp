#include "tasks/image_task.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <variant>

#include "tasks/losses.hpp"
#include "tasks/style/frozen_features.hpp"

namespace gpunn::tasks {

using graph::Graph;
using graph::ValueId;

namespace {

ValueId flat(Graph& g, ValueId image) {
  const TensorType type = g.value(image).type;
  const int64_t rows = type.shape[0];
  return g.add_view("image.values", image, {type.dtype, {rows, type.elements() / rows}});
}

// f32, which networks of features see.
ValueId in_f32(Graph& g, ValueId image) {
  const TensorType type = g.value(image).type;
  if (!is_half(type.dtype)) return image;
  const ValueId wide = g.add_value("image", {DType::f32, type.shape}, graph::Storage::arena);
  g.add_into(GPUNN_OP_COPY, "image", {}, {image}, {wide});
  return wide;
}

}  // namespace

std::optional<Field> ImageTask::imagined_target(const Shape& outputs) const {
  Field target = fields::target_field(target_kind(), {});
  target.type = {DType::f32, {outputs.begin() + 1, outputs.end()}};
  return target;
}

bool ImageTask::gives_images(const Graph& g, const TaskContext& c, const ModelOutputs& outputs) {
  const TensorType& type = g.value(outputs.last).type;
  const int64_t rows = type.shape.empty() ? 0 : type.shape[0];
  return type.shape.size() == 4 && type.elements() == rows * c.outputs;
}

ValueId ImageTask::add_training_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs,
                                     const Batch& batch) const {
  require_output(g, c, outputs);
  const LossConfig& loss = c.experiment.loss;
  const ValueId target = flat(g, batch.fields.at(kTargetField));
  if (!compares_features(loss)) return add_loss_to_target(g, loss, flat(g, outputs.last), target);
  if (c.frozen == nullptr) throw Error("the loss " + name_of(loss.type()) + " has no network of features");
  const ValueId images = in_f32(g, outputs.last);
  const ValueId wanted = g.add_view("target.image", target, g.value(images).type);
  if (const auto* perceptual = std::get_if<Perceptual>(&loss.kind)) {
    return add_perceptual_loss(g, *perceptual, *c.frozen, images, wanted);
  }
  return add_style_loss(g, std::get<StyleLoss>(loss.kind), *c.frozen, images, wanted);
}

ValueId ImageTask::add_evaluation_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs,
                                       const Batch& batch) const {
  return add_training_loss(g, c, outputs, batch);
}

ValueId ImageTask::add_scores(Graph& g, const TaskContext& /*context*/, const ModelOutputs& outputs) const {
  return flat(g, outputs.last);
}

}  // namespace gpunn::tasks
