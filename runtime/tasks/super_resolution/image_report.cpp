#include "tasks/super_resolution/image_report.hpp"

#include <utility>
#include <vector>

#include "tasks/super_resolution/image_quality.hpp"

namespace gpunn::tasks {

namespace {

class ImageRows : public Report {
 public:
  ImageRows(const ReportInputs& inputs, std::span<const TaskMetric> metrics)
      : metrics_(metrics), most_(inputs.worst), all_(metrics) {}

  void add(const EvaluatedRows& row) override {
    all_.add(row);
    if (!row.is_single()) return;
    MetricTallies one(metrics_);
    one.add(row);
    const Scores scores = one.scores({}, 0);
    const std::string& name = row.split().name;
    outputs_.push_back({.index = row.first, .name = name, .scores = scores});
    if (row.first >= most_) return;
    const data::Planes target = target_image(row);
    images_.push_back({.name = name,
                       .channels = target.channels,
                       .height = target.height,
                       .width = target.width,
                       .bicubic = data::to_bytes(bicubic_image(row).values),
                       .enlarged = data::to_bytes(row.prediction(0)),
                       .original = data::to_bytes(target.values),
                       .scores = scores});
  }

  void finish(const Accumulated& sums, ClassEvalReport& report) override {
    report.total.scores = all_.scores(sums, 0);
    report.outputs = std::move(outputs_);
    report.images = std::move(images_);
  }

 private:
  std::span<const TaskMetric> metrics_;
  int64_t most_;
  MetricTallies all_;
  std::vector<OutputReport> outputs_;
  std::vector<ImageReport> images_;
};

}  // namespace

std::unique_ptr<Report> make_image_report(const ReportInputs& inputs, std::span<const TaskMetric> metrics) {
  return std::make_unique<ImageRows>(inputs, metrics);
}

}  // namespace gpunn::tasks
