// Images that are enlarged.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "data/registry.hpp"
#include "tasks/image_task.hpp"
#include "tasks/super_resolution/image_quality.hpp"
#include "tasks/super_resolution/image_report.hpp"

namespace gpunn::tasks {

using graph::Graph;

namespace {

class SuperResolution : public ImageTask {
 public:
  std::string_view name() const override { return "super_resolution"; }
  std::string_view help() const override { return "each sample is a small image that the model enlarges"; }
  std::string command(const std::string& model) const override { return "upscale " + model + " IMAGE --to larger.png"; }
  std::span<const TaskMetric> metrics() const override { return std::span(all_metrics()).first(2); }
  std::unique_ptr<Report> make_report(const ReportInputs& inputs) const override {
    return make_image_report(inputs, all_metrics());
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::mean_squared_error, LossKind::mean_absolute_error,
                                         LossKind::charbonnier, LossKind::huber, LossKind::perceptual};
    return kinds;
  }

  void check_data(const DataConfig& data, const config::GivenKeys& given, config::Diagnostics& found) const override {
    if (!given.sound("data.scale") || data::settings_for<PhotographSet>(data).scale != 1) return;
    found.add(given.place("data.scale"), "data.scale: expected at least 2, found 1");
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
  // Reports also have the figures of bicubic enlargement.
  static std::span<const TaskMetric> all_metrics() {
    static const auto metrics = image_quality();
    return metrics;
  }
};

}  // namespace

const Task& super_resolution() {
  static const SuperResolution task;
  return task;
}

}  // namespace gpunn::tasks
