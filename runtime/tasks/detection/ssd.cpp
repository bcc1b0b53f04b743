// SSD (Liu et al., 2016) as ops: each pixel of the maps has anchors, boxes of several sizes and proportions, and
// answers how a box departs from each.
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
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

constexpr int64_t kSideAnswers = 4;
// By what departures of the middle and the logarithms of the sides are multiplied: one over the paper's variances.
constexpr double kMiddleFactor = 10, kSideFactor = 5;
constexpr double kMostSideLogarithm = 4.135166556742356;  // log(1000 / 16): no anchor becomes larger than 62 times
constexpr double kLeastSide = 1e-3;                       // pixels of a box that is learnt

// Width and height of the anchors of a map's pixel: a square of its size, one between this and the next map's, and of
// each proportion from 2 to the map's largest a lying and a standing one.
std::vector<std::pair<double, double>> anchor_sides(double size, double next, int64_t most_ratio) {
  std::vector<std::pair<double, double>> sides = {{size, size}, {std::sqrt(size * next), std::sqrt(size * next)}};
  for (int64_t ratio = 2; ratio <= most_ratio; ++ratio) {
    const double root = std::sqrt(static_cast<double>(ratio));
    sides.emplace_back(size * root, size / root);
    sides.emplace_back(size / root, size * root);
  }
  return sides;
}

class SsdHead : public DetectionHead {
 public:
  explicit SsdHead(const HeadInputs& inputs)
      : DetectionHead(inputs.rule, inputs.arguments.integer("classes")),
        levels_(inputs.levels()),
        sizes_(inputs.arguments.list("sizes")),
        ratios_(inputs.arguments.list("ratios")),
        positive_(inputs.arguments.number("positive")),
        negative_(inputs.arguments.number("negative")),
        background_(inputs.arguments.boolean("background")) {}

  ValueId add_boxes(Graph& g, ValueId output) const override {
    Expressions e(g, "boxes");
    const Anchors anchors = add_anchors(e);
    const ValueId moved = e.scaled(e.slice(output, 2, 0, 2), 1 / kMiddleFactor);
    const ValueId grown =
        e.minimum(e.scaled(e.slice(output, 2, 2, 2), 1 / kSideFactor), e.constant(kMostSideLogarithm));
    const ValueId middle = e.add(e.mul(moved, anchors.sides), anchors.middle);
    const ValueId half = e.scaled(e.mul(e.exp(grown), anchors.sides), 0.5);
    return concat(e, {e.sub(middle, half), e.add(middle, half)}, 2);
  }

  ValueId add_scores(Graph& g, ValueId output) const override {
    Expressions e(g, "scores");
    const int64_t answers = e.shape(output)[2] - kSideAnswers;
    const ValueId logits = e.slice(output, 2, kSideAnswers, answers);
    if (!background_) return e.op(GPUNN_OP_SIGMOID, {logits});
    const Shape shape = e.shape(logits);
    const ValueId shares = e.op(GPUNN_OP_SOFTMAX, {e.view(logits, {shape[0] * shape[1], answers})});
    return e.slice(e.view(shares, shape), 2, 0, classes());
  }

  // The smooth absolute error of the departures, and the cross-entropy of the classes over the anchors that have a box
  // and the hardest that have none; or the focal loss of the classes over all of them.
  ValueId add_loss(Graph& g, const TaskContext& c, ValueId output, ValueId targets, bool by_row) const override {
    Expressions e(g, "loss");
    const Anchors anchors = add_anchors(e);
    const int64_t images = e.shape(output)[0], per_image = e.shape(output)[1], rows = images * per_image;
    const gpunn_assign_anchors_attrs assign{
        .struct_size = 0, .positive = static_cast<float>(positive_), .negative = static_cast<float>(negative_)};
    const std::vector<ValueId> assigned =
        g.add(GPUNN_OP_ASSIGN_ANCHORS, "loss.assign", Attributes::of(assign), {anchors.corners, targets});
    const ValueId label = e.to_f32(assigned[0]);                 // [N, A]
    const ValueId has_box = e.less_equal(e.constant(0), label);  // [N, A]
    const Shape by_anchor = {images, per_image};

    const gpunn_huber_attrs smooth{.struct_size = 0, .delta = 1};
    const ValueId departures = e.view(e.slice(output, 2, 0, kSideAnswers), {rows, kSideAnswers});
    const ValueId wanted = e.view(wanted_departures(e, anchors, assigned[1], has_box), {rows, kSideAnswers});
    // The op gives the mean of the four.
    const ValueId mean = g.add1(GPUNN_OP_HUBER_LOSS, "loss.boxes", Attributes::of(smooth), {departures, wanted});
    const ValueId of_box = e.mul(e.scaled(e.view(mean, by_anchor), 4), has_box);

    const int64_t answers = e.shape(output)[2] - kSideAnswers;
    const ValueId logits = e.view(e.slice(output, 2, kSideAnswers, answers), {rows, answers});
    const ValueId of_class = background_
                                 ? mined_loss(g, e, std::get<MultiBox>(c.experiment.loss.kind), logits, label, has_box)
                                 : focal_loss(e, std::get<Focal>(c.experiment.loss.kind), logits, assigned[0]);
    const ValueId sum = e.sum(e.add(of_box, e.view(of_class, by_anchor)), 2U, false);
    return e.div(sum, shared_count(e, c, has_box, by_row));
  }

 private:
  // Of all anchors: the middles and the sides, f32 [A, 2], and the corners, f32 [A, 4].
  struct Anchors {
    ValueId middle, sides, corners;
  };

  Anchors add_anchors(Expressions& e) const {
    std::vector<ValueId> middles, sides;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      const DetectionLevel& level = levels_[i];
      const gpunn_grid_points_attrs attrs{.struct_size = 0,
                                          .rows = static_cast<int32_t>(level.rows),
                                          .columns = static_cast<int32_t>(level.columns),
                                          .stride = static_cast<float>(level.stride)};
      const int64_t pixels = level.rows * level.columns;
      const ValueId points = e.op(GPUNN_OP_GRID_POINTS, {}, Attributes::of(attrs));
      std::vector<ValueId> numbers;
      for (const auto& [width, height] :
           anchor_sides(static_cast<double>(sizes_[i]), static_cast<double>(sizes_[i + 1]), ratios_[i])) {
        numbers.push_back(e.constant(width, {1, 1}));
        numbers.push_back(e.constant(height, {1, 1}));
      }
      const auto count = std::ssize(numbers) / 2;
      const ValueId of_pixel = e.view(concat(e, numbers, 1), {1, count, 2});
      const ValueId middle = e.view(e.slice(points, 1, 0, 2), {pixels, 1, 2});
      middles.push_back(e.view(e.expand(middle, {pixels, count, 2}), {pixels * count, 2}));
      sides.push_back(e.view(e.expand(of_pixel, {pixels, count, 2}), {pixels * count, 2}));
    }
    Anchors anchors{.middle = concat(e, middles, 0), .sides = concat(e, sides, 0), .corners = graph::kNoValue};
    const ValueId half = e.scaled(anchors.sides, 0.5);
    anchors.corners = concat(e, {e.sub(anchors.middle, half), e.add(anchors.middle, half)}, 1);
    return anchors;
  }

  // What the output has to be, f32 [N, A, 4]; 0 where an anchor has no box.
  static ValueId wanted_departures(Expressions& e, const Anchors& anchors, ValueId box, ValueId has_box) {
    const Shape shape = e.shape(has_box);
    const ValueId some = e.view(has_box, {shape[0], shape[1], 1});
    const ValueId known = e.select(some, box, anchors.corners);
    const ValueId low = e.slice(known, 2, 0, 2), high = e.slice(known, 2, 2, 2);
    const ValueId middle = e.scaled(e.add(low, high), 0.5);
    const ValueId sides = e.maximum(e.sub(high, low), e.constant(kLeastSide));
    const ValueId moved = e.scaled(e.div(e.sub(middle, anchors.middle), anchors.sides), kMiddleFactor);
    const ValueId grown = e.scaled(e.log(e.div(sides, anchors.sides)), kSideFactor);
    return e.mul(concat(e, {moved, grown}, 2), some);
  }

  // The cross-entropy, the background being the class behind the last: of anchors with a box, and for each of these of
  // so many others as are wrong the most. Those without a label, -2, count for nothing.
  ValueId mined_loss(Graph& g, Expressions& e, const MultiBox& loss, ValueId logits, ValueId label,
                     ValueId has_box) const {
    const Shape shape = e.shape(label);
    const ValueId none = e.constant(static_cast<double>(classes()));
    const ValueId numbers = e.converted(e.view(e.select(has_box, label, none), {shape[0] * shape[1]}), DType::i32);
    const ValueId entropy =
        e.view(g.add(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, "loss.classes", {}, {logits, numbers}).front(), shape);
    const ValueId empty = e.equal(label, e.constant(-1));
    const ValueId wanted = e.scaled(e.sum(has_box, 2U, false), loss.negatives);
    // Where there are fewer empty ones than are wanted, others fill up, which are dropped.
    const ValueId hardest = e.op(GPUNN_OP_TOP_MASK, {e.select(empty, entropy, e.constant(-1)), wanted});
    return e.mul(entropy, e.add(has_box, e.mul(hardest, empty)));
  }

  static ValueId focal_loss(Expressions& e, const Focal& loss, ValueId logits, ValueId label) {
    const gpunn_focal_attrs attrs{
        .struct_size = 0, .alpha = static_cast<float>(loss.alpha), .gamma = static_cast<float>(loss.gamma)};
    return e.op(GPUNN_OP_FOCAL_LOSS, {logits, e.view(label, {e.shape(logits)[0]})}, Attributes::of(attrs));
  }

  std::vector<DetectionLevel> levels_;
  std::vector<int64_t> sizes_, ratios_;
  double positive_, negative_;
  bool background_;
};

std::unique_ptr<DetectionHead> make_ssd(const HeadInputs& inputs) { return std::make_unique<SsdHead>(inputs); }

std::string refuse_ssd(const LossConfig& loss, const config::LayerArguments& arguments) {
  const bool background = arguments.boolean("background");
  if (loss.type() == (background ? LossKind::multibox : LossKind::focal)) return {};
  return background ? "with background: true classes are learnt by loss: multibox, found " + name_of(loss.type()) +
                          "; for focal set background: false"
                    : "with background: false classes are learnt by loss: focal, found " + name_of(loss.type()) +
                          "; for multibox set background: true";
}

}  // namespace

HeadKind ssd_kind() { return {.layer = "ssd_head", .example = "ssd300", .make = make_ssd, .refuse = refuse_ssd}; }

}  // namespace gpunn::tasks
