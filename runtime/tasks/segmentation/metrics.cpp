// Metrics of pixels, all from one confusion matrix that the device counts.
#include <gpunn/ops.h>

#include <cmath>

#include "graph/expressions.hpp"
#include "tasks/segmentation/segmentation.hpp"

namespace gpunn::tasks::pixels {

using graph::Expressions;
using graph::Graph;
using graph::ValueId;

namespace {

// The label maps of a batch; ignored pixels have none of the classes.
ValueId counted_labels(Graph& g, const TaskContext& c, ValueId labels) {
  const int32_t ignored = ignored_label(c);
  if (ignored < 0 || ignored >= c.outputs) return labels;
  Expressions e(g, "metrics.labels");
  const ValueId numbers = e.to_f32(labels);
  return e.converted(e.select(e.equal(numbers, e.constant(ignored)), e.constant(-1), numbers), DType::i32);
}

std::vector<Accumulator> confusion(const TaskContext& context) {
  return {
      {kConfusion,
       {DType::i64, {context.outputs, context.outputs}},
       [](Graph& g, const TaskContext& c, const BatchResults& results, ValueId sum) {
         const ValueId labels = counted_labels(g, c, results.batch.fields.at(c.target->name));
         g.add(GPUNN_OP_CONFUSION_ACCUMULATE, "metrics", {}, {results.outputs.last, labels, results.batch.count, sum});
       }}};
}

double quotient(double of, double by) { return by > 0 ? of / by : kUndefined; }

template <double ClassPixels::*figure>
double mean(const Accumulated& sums) {
  DefinedMean mean;
  for (const ClassPixels& one : class_pixels(sums)) mean.add(one.*figure);
  return mean.value();
}

double pixel_accuracy(const Accumulated& sums) {
  int64_t right = 0, all = 0;
  for (const ClassPixels& one : class_pixels(sums)) {
    right += one.right;
    all += one.pixels;
  }
  return quotient(static_cast<double>(right), static_cast<double>(all));
}

template <double (*figure)(const Accumulated& sums)>
TaskMetric metric(const char* name, const char* title) {
  return {.metric = {name, title, true, true},
          .tally = make_tally<OfSums<figure>>,
          .accumulators = confusion,
          .while_training = true};
}

}  // namespace

std::vector<ClassPixels> class_pixels(const Accumulated& sums) {
  const std::span<const double> counts = sums.of(kConfusion);
  const auto classes = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(counts.size()))));
  std::vector<ClassPixels> found;
  for (std::size_t c = 0; c < classes; ++c) {
    double truth = 0, predicted = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      truth += counts[c * classes + k];
      predicted += counts[k * classes + c];
    }
    const double right = counts[c * classes + c];
    found.push_back({.pixels = std::llround(truth),
                     .right = std::llround(right),
                     .iou = quotient(right, truth + predicted - right),
                     .accuracy = quotient(right, truth),
                     .dice = quotient(2 * right, truth + predicted)});
  }
  return found;
}

std::array<TaskMetric, 3> metrics() {
  return {metric<mean<&ClassPixels::iou>>("miou", "mIoU"), metric<pixel_accuracy>("pixel_accuracy", "pixel accuracy"),
          metric<mean<&ClassPixels::dice>>("dice", "dice")};
}

}  // namespace gpunn::tasks::pixels
