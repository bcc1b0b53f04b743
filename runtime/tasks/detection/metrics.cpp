#include "tasks/detection/metrics.hpp"

#include <algorithm>
#include <vector>

#include "tasks/detection/average_precision.hpp"
#include "tasks/detection/rows.hpp"

namespace gpunn::tasks {

namespace {

int64_t classes_in(const std::vector<DetectionImage>& images) {
  int64_t classes = 0;
  for (const DetectionImage& image : images) {
    for (const TrueBox& object : image.objects) classes = std::max(classes, object.category + 1);
  }
  return classes;
}

double voc_all_points(const std::vector<DetectionImage>& images) {
  return voc_mean(images, classes_in(images), all_points);
}
double coco_mean(const std::vector<DetectionImage>& images) { return coco_figures(images, classes_in(images)).mean; }

// A figure of all images together.
template <double (*figure)(const std::vector<DetectionImage>&)>
class OfDetections : public MetricTally {
 public:
  void add(const EvaluatedRows& rows) override {
    for (std::size_t row = 0; row < rows.count(); ++row) images_.push_back(detection_image(rows, row));
  }
  double value(const Accumulated& /*sums*/) const override { return figure(images_); }

 private:
  std::vector<DetectionImage> images_;
};

}  // namespace

std::array<TaskMetric, 2> detection_metrics() {
  return {TaskMetric{.metric = {"map_50", "mAP at 0.5", true, true},
                     .tally = make_tally<OfDetections<voc_all_points>>,
                     .on_host = true},
          TaskMetric{.metric = {"map_coco", "mAP of COCO", true, true},
                     .tally = make_tally<OfDetections<coco_mean>>,
                     .on_host = true}};
}

}  // namespace gpunn::tasks
