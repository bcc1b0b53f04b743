#include "tasks/detection/report.hpp"

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "data/detection/draw_boxes.hpp"
#include "tasks/detection/average_precision.hpp"
#include "tasks/detection/rows.hpp"
#include "tasks/worst.hpp"

namespace gpunn::tasks {

namespace {

constexpr std::size_t kMostCurvePoints = 400;  // of a chart
constexpr double kLeastShownScore = 0.5;       // of boxes in pictures and in the confusion matrix

DetectedClass class_report(const std::string& name, std::span<const DetectionImage> images, int64_t category) {
  PrecisionRecall curve = voc_curve(images, category);
  DetectedClass one{.name = name,
                    .objects = curve.objects,
                    .detections = std::ssize(curve.score),
                    .ap = all_points(curve),
                    .precision = {},
                    .recall = {}};
  const std::size_t pace = curve.recall.size() / kMostCurvePoints + 1;
  for (std::size_t i = 0; i < curve.recall.size(); i += pace) {
    one.precision.push_back(curve.precision[i]);
    one.recall.push_back(curve.recall[i]);
  }
  return one;
}

// A row that may be among the worst.
struct Candidate {
  int64_t row = 0;
  double loss = 0, scale = 1;
  std::size_t image = 0;  // of the images so far
};

class FoundBoxes : public Report {
 public:
  explicit FoundBoxes(ReportInputs inputs) : inputs_(std::move(inputs)), worst_(inputs_.worst) {}

  void add(const EvaluatedRows& rows) override {
    for (std::size_t i = 0; i < rows.count(); ++i) {
      images_.push_back(detection_image(rows, i));
      worst_.add(rows.losses[i], [&] {
        return Candidate{rows.first + static_cast<int64_t>(i), rows.losses[i], image_scale(rows, i),
                         images_.size() - 1};
      });
    }
  }

  void finish(const Accumulated& /*sums*/, ClassEvalReport& report) override {
    const std::vector<std::string>& names = inputs_.dataset.fields.target().names;
    const int64_t classes = std::ssize(names);
    DetectionReport found;
    for (int64_t category = 0; category < classes; ++category) {
      found.classes.push_back(class_report(names[static_cast<std::size_t>(category)], images_, category));
    }
    const CocoFigures coco = coco_figures(images_, classes);
    found.figures = {{"VOC at 0.5, all points", voc_mean(images_, classes, all_points)},
                     {"VOC at 0.5, 11 points", voc_mean(images_, classes, eleven_points)},
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
    report.detection = std::move(found);

    report.confusion.names = names;
    report.confusion.names.emplace_back("nothing");
    report.confusion.counts = confusion_of(images_, classes, kLeastShownScore);
    report.confusion.note =
        fmt::format("Counts objects by the class of the box that overlaps them by half, with a score of at least {}.",
                    kLeastShownScore);
    report.pictures_note = "Dashed boxes are there, the others are found, with their scores in percent.";
    for (const Candidate& one : worst_.take()) {
      report.worst_pictures.push_back({.row = one.row, .loss = one.loss, .picture = picture_of(one)});
    }
  }

 private:
  std::string name_of_class(int64_t category) const {
    const std::vector<std::string>& names = inputs_.dataset.fields.target().names;
    const auto at = static_cast<std::size_t>(category);
    return at < names.size() ? names[at] : std::to_string(category);
  }

  // A row of the test samples with its objects, dashed, and the detected ones.
  std::string picture_of(const Candidate& one) const {
    const DetectionImage& boxes = images_[one.image];
    const std::vector<std::byte> sample = inputs_.sample(one.row);
    const Shape& shape = inputs_.dataset.test.samples.shape;
    data::Image image{shape[2], shape[3], shape[1], {}};
    const auto plane = static_cast<std::size_t>(shape[2] * shape[3]), channels = static_cast<std::size_t>(shape[1]);
    image.values.resize(plane * channels);
    for (std::size_t i = 0; i < plane; ++i) {
      for (std::size_t c = 0; c < channels; ++c)
        image.values[i * channels + c] = static_cast<uint8_t>(sample[c * plane + i]);
    }
    const auto on_sample = [&](const Box& b) {
      return Box{b.left * one.scale, b.top * one.scale, b.right * one.scale, b.bottom * one.scale};
    };
    std::vector<data::ShownBox> shown;
    for (const TrueBox& box : boxes.objects) shown.push_back({on_sample(box.box), "", box.category, true});
    for (const Detection& box : boxes.detections) {
      if (box.score < kLeastShownScore) continue;
      shown.push_back(
          {on_sample(box.box), fmt::format("{} {:.0f}", name_of_class(box.category), 100 * box.score), box.category});
    }
    data::draw_boxes(image, shown);
    return data::encode_png(image);
  }

  ReportInputs inputs_;
  std::vector<DetectionImage> images_;
  Worst<Candidate> worst_;
};

}  // namespace

std::unique_ptr<Report> make_detection_report(const ReportInputs& inputs) {
  return std::make_unique<FoundBoxes>(inputs);
}

}  // namespace gpunn::tasks
