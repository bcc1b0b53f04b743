// FCOS (Tian et al., 2019) as ops.
#include "tasks/detection/head.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <string>
#include <utility>

#include "config/layer_table.hpp"
#include "graph/expressions.hpp"

namespace gpunn::tasks {

using graph::Attributes;
using graph::Expressions;
using graph::Graph;
using graph::ValueId;

namespace {

constexpr int64_t kSides = 4, kCenterness = 4, kFirstClass = 5;
constexpr double kReach = 8;          // strides from a point to the farthest side of a box that it learns
constexpr double kMostLogarithm = 8;  // of a distance in strides: exp() stays finite
constexpr const char* kHead = "fcos_head";

ValueId concat(Graph& g, const std::string& name, const std::vector<ValueId>& parts, int32_t axis) {
  if (parts.size() == 1) return parts.front();
  return g.add1(GPUNN_OP_CONCAT, name, Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = axis}), parts);
}

// What the layer takes, by the names of the layers that give it.
std::vector<std::string> inputs_of(const ModelSpec& model) {
  const LayerSpec& last = model.layers.back();
  if (!last.from.empty()) return last.from;
  return {model.layers.size() > 1 ? model.layers[model.layers.size() - 2].name : std::string()};
}

}  // namespace

DetectionHead detection_head(const Graph& g, const TaskContext& c, const ModelOutputs& outputs) {
  const LayerSpec& last = c.experiment.model.layers.back();
  if (last.type != kHead) {
    throw ConfigError(
        {{last.where, "the task detection needs a model that ends in " + std::string(kHead) +
                          ", such as models/fcos.yaml; the last layer '" + last.name + "' is " + last.type}});
  }
  const config::LayerArguments arguments(*config::find_layer_type(last.type), last);
  DetectionHead head{.levels = {},
                     .classes = arguments.integer("classes"),
                     .points = 0,
                     .radius = arguments.number("radius"),
                     .overlap = arguments.number("overlap"),
                     .least_score = arguments.number("least_score"),
                     .most = arguments.integer("most")};
  if (head.classes < c.outputs) {
    throw ConfigError(
        {{last.where, "the data set '" + c.experiment.data.dataset + "' has " + std::to_string(c.outputs) +
                          " classes, the model's last layer '" + last.name + "' tells " + std::to_string(head.classes) +
                          ": set model.parameters.classes to at least " + std::to_string(c.outputs)}});
  }
  const std::vector<int64_t> strides = arguments.list("strides");
  const std::vector<std::string> inputs = inputs_of(c.experiment.model);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& map = g.value(outputs.layers.at(inputs[i])).type.shape;
    head.levels.push_back({map[2], map[3], static_cast<double>(strides.at(i))});
    head.points += map[2] * map[3];
  }
  return head;
}

ValueId add_points(Graph& g, const DetectionHead& head) {
  std::vector<ValueId> levels;
  for (const DetectionLevel& level : head.levels) {
    const gpunn_grid_points_attrs attrs{.struct_size = 0,
                                        .rows = static_cast<int32_t>(level.rows),
                                        .columns = static_cast<int32_t>(level.columns),
                                        .stride = static_cast<float>(level.stride)};
    levels.push_back(g.add1(GPUNN_OP_GRID_POINTS, "points", Attributes::of(attrs), {}));
  }
  return concat(g, "points", levels, 0);
}

ValueId add_boxes(Graph& g, const DetectionHead&, ValueId output, ValueId points) {
  Expressions e(g, "boxes");
  const ValueId place = e.slice(points, 1, 0, 2), stride = e.slice(points, 1, 2, 1);
  const ValueId back = e.scaled(stride, -1);
  const ValueId from = concat(g, "boxes", {place, place}, 1);
  const ValueId step = concat(g, "boxes", {back, back, stride, stride}, 1);
  const ValueId logarithms = e.slice(output, 2, 0, kSides);
  const ValueId distances = e.exp(e.minimum(logarithms, e.constant(kMostLogarithm)));
  return e.add(e.mul(distances, step), from);
}

ValueId add_detection_loss(Graph& g, const TaskContext& c, const DetectionHead& head, ValueId output, ValueId targets,
                           bool by_row) {
  Expressions e(g, "loss");
  const int64_t images = e.shape(output)[0], rows = images * head.points;
  const ValueId points = add_points(g, head);
  const int64_t boxes = e.shape(targets)[1] / kBoxNumbers;
  const ValueId wanted = e.slice(e.view(targets, {images, boxes, kBoxNumbers}), 2, 0, 5);
  const gpunn_assign_points_attrs assign{.struct_size = 0,
                                         .radius = static_cast<float>(head.radius),
                                         .reach = static_cast<float>(kReach),
                                         .least_stride = static_cast<float>(head.levels.front().stride),
                                         .most_stride = static_cast<float>(head.levels.back().stride)};
  const std::vector<ValueId> assigned =
      g.add(GPUNN_OP_ASSIGN_POINTS, "loss.assign", Attributes::of(assign), {points, wanted});
  const ValueId label = assigned[0], box = assigned[1], centerness = assigned[2];  // [N, P], [N, P, 4], [N, P]

  const Focal& loss = std::get<Focal>(c.experiment.loss.kind);
  const gpunn_focal_attrs focal{
      .struct_size = 0, .alpha = static_cast<float>(loss.alpha), .gamma = static_cast<float>(loss.gamma)};
  const ValueId logits = e.view(e.slice(output, 2, kFirstClass, head.classes), {rows, head.classes});
  const ValueId of_class =
      g.add1(GPUNN_OP_FOCAL_LOSS, "loss.classes", Attributes::of(focal), {logits, e.view(label, {rows})});
  const ValueId found = add_boxes(g, head, output, points);
  const ValueId of_box =
      g.add1(GPUNN_OP_GIOU_LOSS, "loss.boxes", {}, {e.view(found, {rows, 4}), e.view(box, {rows, 4})});
  const ValueId middle = e.view(e.slice(output, 2, kCenterness, 1), {rows, 1});
  const ValueId of_middle =
      g.add1(GPUNN_OP_BCE_LOGITS_LOSS, "loss.centerness", {}, {middle, e.view(centerness, {rows, 1})});

  const Shape by_point = {images, head.points};
  const auto of_points = [&](ValueId x) { return e.sum(e.view(x, by_point), 2U, false); };  // [N]
  const ValueId has_box = e.less_equal(e.constant(0), e.to_f32(label));
  // How many points share a row's loss, and their centerness, by which boxes are weighed.
  const auto shared = [&](ValueId x) {
    ValueId sum = of_points(x);
    if (by_row) return e.maximum(sum, e.constant(1));
    sum = e.sum(sum, 1U, true);
    const double of_image = 1.0 / (static_cast<double>(images) * c.world);
    if (c.world > 1) {
      const gpunn_all_reduce_attrs ranks{.struct_size = 0, .parts = c.world};
      sum = e.op(GPUNN_OP_ALL_REDUCE, {e.view(sum, {1, 1})}, Attributes::of(ranks));
    }
    return e.maximum(e.scaled(sum, of_image), e.constant(of_image));
  };
  const ValueId count = shared(has_box), weight = shared(centerness);
  const ValueId by_count = e.add(of_points(of_class), of_points(e.mul(e.view(of_middle, by_point), has_box)));
  return e.add(e.div(by_count, count), e.div(of_points(e.mul(e.view(of_box, by_point), centerness)), weight));
}

ValueId add_detections(Graph& g, const DetectionHead& head, ValueId output) {
  Expressions e(g, "detections");
  const ValueId boxes = e.maximum(add_boxes(g, head, output, add_points(g, head)), e.constant(0));
  const ValueId classes = e.op(GPUNN_OP_SIGMOID, {e.slice(output, 2, kFirstClass, head.classes)});
  const ValueId centerness = e.op(GPUNN_OP_SIGMOID, {e.slice(output, 2, kCenterness, 1)});
  const ValueId scores = e.sqrt(e.mul(classes, centerness));
  const gpunn_suppression_attrs attrs{.struct_size = 0,
                                      .overlap = static_cast<float>(head.overlap),
                                      .least_score = static_cast<float>(head.least_score),
                                      .most = static_cast<int32_t>(head.most),
                                      .by_class = 1};
  const ValueId found = g.add1(GPUNN_OP_NON_MAXIMUM_SUPPRESSION, "detections", Attributes::of(attrs), {boxes, scores});
  return e.view(found, {e.shape(found)[0], head.most * e.shape(found)[2]});
}

}  // namespace gpunn::tasks
