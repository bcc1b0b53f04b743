// Images that are painted in a style (Johnson, Alahi and Fei-Fei, 2016).
#include <gpunn/error.hpp>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "data/registry.hpp"
#include "tasks/image_task.hpp"
#include "tasks/super_resolution/image_quality.hpp"
#include "tasks/super_resolution/image_report.hpp"
#include "tasks/super_resolution/quality.hpp"

namespace gpunn::tasks {

namespace {

double mean_loss(const Accumulated& sums) { return sums.mean_loss(); }

// The mean structural similarity of images and what they were made of.
class Structure : public MetricTally {
 public:
  void add(const EvaluatedRows& row) override {
    if (!row.is_single()) return;
    const data::Planes target = target_image(row);
    const std::vector<uint8_t> image = measured_plane(predicted_image(row)), original = measured_plane(target);
    mean_.add(ssim({image, original, target.height, target.width}));
  }
  double value(const Accumulated& /*sums*/) const override { return mean_.value(); }

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
        TaskMetric{.metric = {"total_loss", "total loss", false, false}, .tally = make_tally<OfSums<mean_loss>>}};
    return metrics;
  }
  std::unique_ptr<Report> make_report(const ReportInputs& inputs) const override {
    static const std::array<TaskMetric, 1> metrics = {TaskMetric{
        .metric = {"structure", "structure kept", true, false}, .tally = make_tally<Structure>, .on_host = true}};
    return make_image_report(inputs, metrics);
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::style};
    return kinds;
  }
  void check_data(const DataConfig& data, const config::GivenKeys& given, config::Diagnostics& found) const override {
    const PhotographSet settings = data::settings_for<PhotographSet>(data);
    if (given.sound("data.scale") && settings.scale != 1) {
      found.add(given.place("data.scale"), "data.scale: images that are painted keep their size; set it to 1");
    }
    if (given.sound("data.colours") && settings.colours != ColourPlanes::rgb) {
      found.add(given.place("data.colours"), "data.colours: images that are painted are in colours; set it to rgb");
    }
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
