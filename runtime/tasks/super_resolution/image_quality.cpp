#include "tasks/super_resolution/image_quality.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "data/images/bicubic.hpp"
#include "tasks/super_resolution/quality.hpp"

namespace gpunn::tasks {

using data::Planes;

namespace {

Planes planes(const TensorType& rows, std::vector<float> values) {
  return {rows.shape.at(1), rows.shape.at(2), rows.shape.at(3), std::move(values)};
}

// The mean of a quality of the images that `image_of` gives, compared with their targets. A border as wide as the scale
// is left out. Undefined for rows of one size, such as patches.
template <double (*quality)(const ComparedPlanes&), Planes (*image_of)(const EvaluatedRows&)>
class ImageQuality : public MetricTally {
 public:
  void add(const EvaluatedRows& row) override {
    if (!row.is_single()) return;
    const Planes target = target_image(row);
    const std::vector<uint8_t> bytes = measured_plane(image_of(row)), original = measured_plane(target);
    mean_.add(quality({bytes, original, target.height, target.width, row.target().scale}));
  }
  double value(const Accumulated& /*sums*/) const override { return mean_.value(); }

 private:
  DefinedMean mean_;
};

template <double (*quality)(const ComparedPlanes&), Planes (*image_of)(const EvaluatedRows&)>
TaskMetric metric(const Metric& name) {
  return {.metric = name, .tally = make_tally<ImageQuality<quality, image_of>>, .on_host = true};
}

}  // namespace

Planes input_image(const EvaluatedRows& row) {
  const Split& split = row.split();
  std::vector<float> values(split.sample_bytes().size() / sizeof(float));
  std::memcpy(values.data(), split.sample_bytes().data(), split.sample_bytes().size());
  return planes(split.samples, std::move(values));
}

Planes target_image(const EvaluatedRows& row) {
  const std::string& name = row.target().name;
  return planes(row.split().fields.at(name).type, row.floats_of(name));
}

Planes predicted_image(const EvaluatedRows& row) {
  const std::span<const float> values = row.prediction(0);
  return planes(row.split().fields.at(row.target().name).type, {values.begin(), values.end()});
}

Planes bicubic_image(const EvaluatedRows& row) {
  Planes image = input_image(row);
  const TensorType& target = row.split().fields.at(row.target().name).type;
  if (row.split().samples.shape == target.shape) return image;  // the model gets it enlarged
  return data::resize_bicubic(image, static_cast<double>(row.target().scale));
}

std::array<TaskMetric, 4> image_quality() {
  return {metric<psnr, predicted_image>({"psnr", "PSNR", true, false}),
          metric<ssim, predicted_image>({"ssim", "SSIM", true, false}),
          metric<psnr, bicubic_image>({"bicubic_psnr", "bicubic PSNR", true, false}),
          metric<ssim, bicubic_image>({"bicubic_ssim", "bicubic SSIM", true, false})};
}

}  // namespace gpunn::tasks
