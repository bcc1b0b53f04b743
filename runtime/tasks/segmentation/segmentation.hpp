// The parts of the task segmentation: a class for each pixel of an image. Logits are f32[N,C,H,W], label maps
// i32[N,H,W]; pixels with the label Field::ignored count nowhere.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tasks/task.hpp"

namespace gpunn::tasks::pixels {

// The loss of each row, f32[N], in training with the weights of the classes and the label smoothing. A row's
// cross-entropy is the weighted mean over its pixels that count, sum(loss) / sum(weight), and 0 without any.
graph::ValueId add_loss(graph::Graph& g, const TaskContext& context, graph::ValueId logits, graph::ValueId labels,
                        Phase phase);
// The variables that it reads.
std::vector<Table> loss_tables(const TaskContext& context);

// The label of pixels that do not count; one that no pixel has if all count.
int32_t ignored_label(const TaskContext& context);

// The accumulator of all metrics, i64[C,C]: counts pixels by their class, row by row, and the predicted class.
inline constexpr const char* kConfusion = "confusion";

// Figures of a class over all pixels that count.
struct ClassPixels {
  int64_t pixels = 0, right = 0;  // of the class, and those of them that are predicted as it
  // Undefined for a class that no pixel has, in truth or as predicted; accuracy also without pixels of the class.
  double iou = 0, accuracy = 0, dice = 0;
};
std::vector<ClassPixels> class_pixels(const Accumulated& sums);

// miou, pixel_accuracy and dice. Means over classes leave out undefined figures.
std::array<TaskMetric, 3> metrics();

// Figures of each class, the confusion matrix, and the rows with the largest loss.
std::unique_ptr<Report> make_report(const ReportInputs& inputs);

}  // namespace gpunn::tasks::pixels
