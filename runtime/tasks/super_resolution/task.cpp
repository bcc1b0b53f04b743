// Images that are enlarged.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tasks/image_task.hpp"
#include "tasks/output_metric.hpp"
#include "tasks/super_resolution/bicubic.hpp"
#include "tasks/super_resolution/quality.hpp"

namespace gpunn::tasks {

namespace {

using graph::Graph;

Planes planes(const Shape& shape, std::span<const float> values) {
  return {shape[0], shape[1], shape[2], {values.begin(), values.end()}};
}

// What is compared with the target.
enum class Of { prediction, bicubic };

// The mean of a quality of whole images.
template <double (*quality)(const ComparedPlanes&), Of of>
class ImageQuality : public RowMetric {
 public:
  void add(const ScoredRows& rows) override {
    if (!rows.images) return;
    const ScoredImages& images = *rows.images;
    const auto size = static_cast<std::size_t>(rows.outputs);
    const auto input_size = static_cast<std::size_t>(element_count(images.input_shape));
    for (std::size_t row = 0; row * size < rows.targets.size(); ++row) {
      const Planes target = planes(images.target_shape, rows.targets.subspan(row * size, size));
      const Planes image = of == Of::prediction
                               ? planes(images.target_shape, rows.predictions.subspan(row * size, size))
                               : enlarged(images, images.inputs.subspan(row * input_size, input_size));
      const std::vector<uint8_t> bytes = measured_plane(image), original = measured_plane(target);
      mean_.add(quality({bytes, original, target.height, target.width, images.scale}));
    }
  }
  double value() const override { return mean_.value(); }

 private:
  // Bicubic, where the model does not get it anyway.
  static Planes enlarged(const ScoredImages& images, std::span<const float> input) {
    Planes image = planes(images.input_shape, input);
    if (images.input_shape == images.target_shape) return image;
    return resize_bicubic(image, static_cast<double>(images.scale));
  }

  DefinedMean mean_;
};

class SuperResolution : public ImageTask {
 public:
  std::string_view name() const override { return "super_resolution"; }
  std::string_view help() const override { return "each sample is a small image that the model enlarges"; }
  std::string command(const std::string& model) const override { return "upscale " + model + " IMAGE --to larger.png"; }
  std::span<const TaskMetric> metrics() const override { return std::span(all_metrics()).first(2); }
  std::span<const TaskMetric> output_metrics() const override { return all_metrics(); }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::mean_squared_error, LossKind::mean_absolute_error,
                                         LossKind::charbonnier, LossKind::huber, LossKind::perceptual};
    return kinds;
  }

  void require_output(const Graph& g, const TaskContext& c, const ModelOutputs& outputs) const override {
    if (gives_images(g, c, outputs)) return;
    const LayerSpec& last = c.experiment.model.output_layer();
    throw ConfigError(
        {{last.where, "the task super_resolution compares an image with its target of " + std::to_string(c.outputs) +
                          " values (data.scale, data.patch_size, " + "data.colours); the model's last layer '" +
                          last.name + "' gives " + to_string(g.value(outputs.last).type) +
                          ". A model that enlarges takes data.input: small, one that keeps the size " +
                          "data.input: enlarged"}});
  }

 private:
  static std::span<const TaskMetric> all_metrics() {
    static const std::array<TaskMetric, 4> metrics = {
        TaskMetric{.metric = {"psnr", "PSNR", true, false}, .of_rows = make_metric<ImageQuality<psnr, Of::prediction>>},
        TaskMetric{.metric = {"ssim", "SSIM", true, false}, .of_rows = make_metric<ImageQuality<ssim, Of::prediction>>},
        TaskMetric{.metric = {"bicubic_psnr", "bicubic PSNR", true, false},
                   .of_rows = make_metric<ImageQuality<psnr, Of::bicubic>>},
        TaskMetric{.metric = {"bicubic_ssim", "bicubic SSIM", true, false},
                   .of_rows = make_metric<ImageQuality<ssim, Of::bicubic>>}};
    return metrics;
  }
};

}  // namespace

const Task& super_resolution() {
  static const SuperResolution task;
  return task;
}

}  // namespace gpunn::tasks
