#include "training/detection_reports.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "data/detection/draw_boxes.hpp"
#include "tasks/detection/average_precision.hpp"
#include "tasks/detection/rows.hpp"
#include "training/targets.hpp"

namespace gpunn::training {

namespace {

constexpr std::size_t kMostCurvePoints = 400;  // of a chart

std::string name_of_class(const Dataset& data, int64_t category) {
  const auto at = static_cast<std::size_t>(category);
  return at < data.fields.target().names.size() ? data.fields.target().names[at] : std::to_string(category);
}

// Row `row` of the test samples with what is there, dashed, and what is found.
std::string picture_of(const Dataset& data, const std::vector<std::byte>& sample, const tasks::DetectionImage& boxes,
                       double scale, double least_score) {
  const Shape& shape = data.test.samples.shape;
  data::Image image{shape[2], shape[3], shape[1], {}};
  const auto plane = static_cast<std::size_t>(shape[2] * shape[3]), channels = static_cast<std::size_t>(shape[1]);
  image.values.resize(plane * channels);
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t c = 0; c < channels; ++c)
      image.values[i * channels + c] = static_cast<uint8_t>(sample[c * plane + i]);
  }
  const auto on_sample = [&](const tasks::Box& b) {
    return tasks::Box{b.left * scale, b.top * scale, b.right * scale, b.bottom * scale};
  };
  std::vector<data::ShownBox> shown;
  for (const tasks::TrueBox& one : boxes.objects) shown.push_back({on_sample(one.box), "", one.category, true});
  for (const tasks::Detection& one : boxes.detections) {
    if (one.score < least_score) continue;
    shown.push_back({on_sample(one.box), fmt::format("{} {:.0f}", name_of_class(data, one.category), 100 * one.score),
                     one.category});
  }
  data::draw_boxes(image, shown);
  return data::encode_png(image);
}

DetectedClass class_report(const Dataset& data, std::span<const tasks::DetectionImage> images, int64_t category) {
  tasks::PrecisionRecall curve = tasks::voc_curve(images, category);
  DetectedClass one{.name = name_of_class(data, category),
                    .objects = curve.objects,
                    .detections = std::ssize(curve.score),
                    .ap = tasks::all_points(curve),
                    .precision = {},
                    .recall = {}};
  const std::size_t pace = curve.recall.size() / kMostCurvePoints + 1;
  for (std::size_t i = 0; i < curve.recall.size(); i += pace) {
    one.precision.push_back(curve.precision[i]);
    one.recall.push_back(curve.recall[i]);
  }
  return one;
}

}  // namespace

ClassEvalReport evaluate_detections(Session& session, int64_t worst) {
  const Dataset& data = session.dataset();
  ClassEvalReport report;
  report.targets = data.fields.target().kind;
  report.output = session.task().output();
  DetectionReport found;
  std::vector<tasks::DetectionImage> images;
  std::vector<std::pair<double, int64_t>> losses;  // and rows
  std::vector<double> scales;
  report.total = session.evaluate_rows([&](const RowOutputs& rows) {
    const RowsToScore scored(data, rows);
    for (std::size_t i = 0; i < rows.losses.size(); ++i) {
      images.push_back(tasks::detection_image(scored.rows(), i));
      scales.push_back(tasks::image_scale(scored.rows(), i));
      const double loss = rows.losses[i];
      losses.emplace_back(std::isnan(loss) ? HUGE_VAL : loss, rows.first + static_cast<int64_t>(i));
    }
  });
  for (int64_t category = 0; category < data.fields.target().count(); ++category) {
    found.classes.push_back(class_report(data, images, category));
  }
  const tasks::CocoFigures coco = tasks::coco_figures(images, data.fields.target().count());
  found.figures = {{"VOC at 0.5, all points", tasks::voc_mean(images, data.fields.target().count(), tasks::all_points)},
                   {"VOC at 0.5, 11 points", tasks::voc_mean(images, data.fields.target().count(), tasks::eleven_points)},
                   {"COCO, 0.5 to 0.95", coco.mean},
                   {"COCO at 0.5", coco.at_50},
                   {"COCO at 0.75", coco.at_75},
                   {"COCO, small objects", coco.small},
                   {"COCO, medium objects", coco.medium},
                   {"COCO, large objects", coco.large},
                   {"COCO, recall of 1 box", coco.recall_1},
                   {"COCO, recall of 10 boxes", coco.recall_10},
                   {"COCO, recall of 100 boxes", coco.recall_100},
                   {"COCO, recall of small objects", coco.recall_small},
                   {"COCO, recall of medium objects", coco.recall_medium},
                   {"COCO, recall of large objects", coco.recall_large}};
  for (std::size_t i = 0; i < found.classes.size(); ++i) found.classes[i].coco_ap = coco.by_class[i];
  found.confusion = tasks::confusion_of(images, data.fields.target().count(), found.least_score);
  std::ranges::stable_sort(losses, std::ranges::greater{}, &std::pair<double, int64_t>::first);
  const auto shown = std::min(losses.size(), static_cast<std::size_t>(std::max<int64_t>(worst, 0)));
  for (std::size_t i = 0; i < shown; ++i) {
    const auto [loss, row] = losses[i];
    const auto at = static_cast<std::size_t>(row);
    found.worst.push_back(
        {.row = row,
         .loss = loss,
         .picture = picture_of(data, session.data().test_sample(row), images[at], scales[at], found.least_score)});
  }
  report.detection = std::move(found);
  return report;
}

}  // namespace gpunn::training
