// Images that are painted in a style (Johnson, Alahi and Fei-Fei, 2016).
#include <gpunn/error.hpp>

#include <array>
#include <string>
#include <vector>

#include "tasks/image_task.hpp"
#include "tasks/output_metric.hpp"
#include "tasks/super_resolution/quality.hpp"

namespace gpunn::tasks {

namespace {

double mean_loss(const Totals& totals) { return totals.mean_loss(); }

// The mean structural similarity of images and what they were made of.
class Structure : public RowMetric {
 public:
  void add(const ScoredRows& rows) override {
    if (!rows.images) return;
    const Shape& shape = rows.images->target_shape;
    const auto size = static_cast<std::size_t>(rows.outputs);
    const auto luma_of = [&](std::span<const float> values) {
      return measured_plane(Planes{shape[0], shape[1], shape[2], {values.begin(), values.end()}});
    };
    for (std::size_t at = 0; at < rows.targets.size(); at += size) {
      const std::vector<uint8_t> image = luma_of(rows.predictions.subspan(at, size));
      const std::vector<uint8_t> original = luma_of(rows.targets.subspan(at, size));
      mean_.add(ssim({image, original, shape[1], shape[2]}));
    }
  }
  double value() const override { return mean_.value(); }

 private:
  DefinedMean mean_;
};

class StyleTransfer : public ImageTask {
 public:
  std::string_view name() const override { return "style_transfer"; }
  std::string_view help() const override { return "each sample is an image that the model paints in a style"; }
  std::string command(const std::string& model) const override {
    return "stylize " + model + " IMAGE --to painted.png";
  }
  std::span<const TaskMetric> metrics() const override {
    static const std::array<TaskMetric, 1> metrics = {
        TaskMetric{.metric = {"total_loss", "total loss", false, false}, .of_totals = mean_loss}};
    return metrics;
  }
  std::span<const TaskMetric> output_metrics() const override {
    static const std::array<TaskMetric, 1> metrics = {
        TaskMetric{.metric = {"structure", "structure kept", true, false}, .of_rows = make_metric<Structure>}};
    return metrics;
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::style};
    return kinds;
  }
  void require_output(const graph::Graph& g, const TaskContext& c, const ModelOutputs& outputs) const override {
    if (gives_images(g, c, outputs)) return;
    const LayerSpec& last = c.experiment.model.output_layer();
    throw ConfigError(
        {{last.where, "the task style_transfer compares an image of " + std::to_string(c.outputs) +
                          " values with the one that it was made of; the model's last layer '" + last.name +
                          "' gives " + to_string(g.value(outputs.last).type) +
                          ". A model with strides keeps the size of images whose sides (data.patch_size) " +
                          "are a multiple of these"}});
  }
};

}  // namespace

const Task& style_transfer() {
  static const StyleTransfer task;
  return task;
}

}  // namespace gpunn::tasks
