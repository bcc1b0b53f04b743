// FCOS (Tian et al., 2019) as ops: each point of the maps answers with the distances to the sides of a box.
#include <gpunn/ops.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/layer_table.hpp"
#include "tasks/detection/head.hpp"
#include "tasks/losses.hpp"

namespace gpunn::tasks {

using graph::Attributes;
using graph::Expressions;
using graph::Graph;
using graph::ValueId;

namespace {

constexpr int64_t kCenterness = 4, kFirstClass = 5;
constexpr double kReach = 8;          // strides from a point to the farthest side of a box that it learns
constexpr double kMostLogarithm = 8;  // of a distance in strides: exp() stays finite

class FcosHead : public DetectionHead {
 public:
  explicit FcosHead(const HeadInputs& inputs)
      : DetectionHead(inputs.rule, inputs.arguments.integer("classes")),
        levels_(inputs.levels()),
        radius_(inputs.arguments.number("radius")) {}

  ValueId add_boxes(Graph& g, ValueId output) const override {
    Expressions e(g, "boxes");
    return boxes_at(e, output, add_points(e));
  }

  ValueId add_scores(Graph& g, ValueId output) const override {
    Expressions e(g, "scores");
    const ValueId of_class = e.op(GPUNN_OP_SIGMOID, {e.slice(output, 2, kFirstClass, classes())});
    return e.sqrt(e.mul(of_class, e.op(GPUNN_OP_SIGMOID, {e.slice(output, 2, kCenterness, 1)})));
  }

  // The focal loss of the classes, the generalised overlap of boxes weighed by centerness, and the cross-entropy of the
  // centerness.
  ValueId add_loss(Graph& g, const TaskContext& c, ValueId output, ValueId targets, bool by_row) const override {
    Expressions e(g, "loss");
    const ValueId points = add_points(e);
    const int64_t images = e.shape(output)[0], rows = images * e.shape(points)[0];
    const gpunn_assign_points_attrs assign{.struct_size = 0,
                                           .radius = static_cast<float>(radius_),
                                           .reach = static_cast<float>(kReach),
                                           .least_stride = static_cast<float>(levels_.front().stride),
                                           .most_stride = static_cast<float>(levels_.back().stride)};
    const std::vector<ValueId> assigned =
        g.add(GPUNN_OP_ASSIGN_POINTS, "loss.assign", Attributes::of(assign), {points, targets});
    const ValueId label = assigned[0], box = assigned[1], centerness = assigned[2];  // [N, P], [N, P, 4], [N, P]

    const Focal& loss = std::get<Focal>(c.experiment.loss.kind);
    const gpunn_focal_attrs focal{
        .struct_size = 0, .alpha = static_cast<float>(loss.alpha), .gamma = static_cast<float>(loss.gamma)};
    const ValueId logits = e.view(e.slice(output, 2, kFirstClass, classes()), {rows, classes()});
    const ValueId of_class =
        g.add1(GPUNN_OP_FOCAL_LOSS, "loss.classes", Attributes::of(focal), {logits, e.view(label, {rows})});
    const ValueId found = boxes_at(e, output, points);
    const ValueId of_box =
        g.add1(GPUNN_OP_GIOU_LOSS, "loss.boxes", {}, {e.view(found, {rows, 4}), e.view(box, {rows, 4})});
    const ValueId middle = e.view(e.slice(output, 2, kCenterness, 1), {rows, 1});
    const ValueId of_middle =
        g.add1(GPUNN_OP_BCE_LOGITS_LOSS, "loss.centerness", {}, {middle, e.view(centerness, {rows, 1})});

    const Shape by_point = {images, rows / images};
    const auto of_points = [&](ValueId x) { return e.sum(e.view(x, by_point), 2U, false); };  // [N]
    const ValueId has_box = e.less_equal(e.constant(0), e.to_f32(label));
    // How many points share a row's loss, and their centerness, by which boxes are weighed.
    const ValueId count = shared_count(e, c, has_box, by_row), weight = shared_count(e, c, centerness, by_row);
    const ValueId by_count = e.add(of_points(of_class), of_points(e.mul(e.view(of_middle, by_point), has_box)));
    return e.add(e.div(by_count, count), e.div(of_points(e.mul(e.view(of_box, by_point), centerness)), weight));
  }

 private:
  // The points of all maps, f32 [P, 3], as GRID_POINTS gives them.
  ValueId add_points(Expressions& e) const {
    std::vector<ValueId> points;
    for (const DetectionLevel& level : levels_) {
      const gpunn_grid_points_attrs attrs{.struct_size = 0,
                                          .rows = static_cast<int32_t>(level.rows),
                                          .columns = static_cast<int32_t>(level.columns),
                                          .stride = static_cast<float>(level.stride)};
      points.push_back(e.op(GPUNN_OP_GRID_POINTS, {}, Attributes::of(attrs)));
    }
    return concat(e, points, 0);
  }

  static ValueId boxes_at(Expressions& e, ValueId output, ValueId points) {
    const ValueId place = e.slice(points, 1, 0, 2), stride = e.slice(points, 1, 2, 1);
    const ValueId back = e.scaled(stride, -1);
    const ValueId from = concat(e, {place, place}, 1);
    const ValueId step = concat(e, {back, back, stride, stride}, 1);
    const ValueId distances = e.exp(e.minimum(e.slice(output, 2, 0, 4), e.constant(kMostLogarithm)));
    return e.add(e.mul(distances, step), from);
  }

  std::vector<DetectionLevel> levels_;
  double radius_;
};

std::unique_ptr<DetectionHead> make_fcos(const HeadInputs& inputs) { return std::make_unique<FcosHead>(inputs); }

std::string refuse_fcos(const LossConfig& loss, const config::LayerArguments&) {
  if (loss.type() == LossKind::focal) return {};
  return "its classes are learnt by loss: focal, found " + name_of(loss.type());
}

}  // namespace

HeadKind fcos_kind() { return {.layer = "fcos_head", .example = "fcos", .make = make_fcos, .refuse = refuse_fcos}; }

}  // namespace gpunn::tasks
