// Trained models in eight bits.
#include <gpunn/error.hpp>
#include <gpunn/quantization.hpp>

#include <filesystem>
#include <optional>
#include <string>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errands/listener.hpp"
#include "values/record.hpp"
#include "values/settings.hpp"

namespace gpunn::python {

namespace {

CalibrationMethod calibration_method_named(const std::string& name) {
  if (name == "maximum") return CalibrationMethod::maximum;
  if (name == "entropy") return CalibrationMethod::entropy;
  if (name == "percentile") return CalibrationMethod::percentile;
  throw Error("method: expected \"maximum\", \"entropy\" or \"percentile\", found \"" + name + "\"", ExitCode::usage);
}

}  // namespace

void bind_quantize(nb::module_& module) {
  namespace fs = std::filesystem;
  Record<QuantizedLayer>(module, "QuantizedLayer", "A tensor in eight bits.")
      .field("name", &QuantizedLayer::name, "Of the layer that gives it.")
      .field("scale", &QuantizedLayer::scale, "What one step of the integer stands for.")
      .field("zero_point", &QuantizedLayer::zero_point, "The integer that stands for 0.")
      .field("decibels", &QuantizedLayer::decibels, "Of the tensor over its error.");
  Record<QuantizeReport>(module, "QuantizeReport", "What was put in eight bits, and what it costs.")
      .field("file", &QuantizeReport::file, "The ONNX file.")
      .field("images", &QuantizeReport::images, "Samples of the calibration.")
      .field("from_cache", &QuantizeReport::from_cache)
      .field("layers", &QuantizeReport::layers)
      .field("convolutions", &QuantizeReport::convolutions, "Those that run in eight bits.")
      .field("dense", &QuantizeReport::dense, "Dense layers that run in eight bits.")
      .field("rows", &QuantizeReport::rows, "Test rows that the figures are of.")
      .computed(
          "metric",
          [](const QuantizeReport& report) {
            return report.metric ? std::optional(report.metric->name) : std::nullopt;
          },
          "The metric that decides, by its name; None where nothing was measured.")
      .field("before", &QuantizeReport::before, "The metric of the model itself.")
      .field("after", &QuantizeReport::after, "The metric of the model in eight bits.")
      .field("lost", &QuantizeReport::lost, "Points of a metric in percent, else percent of its value before.")
      .field("not_measured", &QuantizeReport::not_measured, "Why nothing was measured; else empty.")
      .field("accuracy_before", &QuantizeReport::accuracy_before, "0 to 1; None where there are no classes.")
      .field("accuracy_after", &QuantizeReport::accuracy_after, "0 to 1; None where there are no classes.");
  module.def(
      "quantize",
      [](const fs::path& model, const fs::path& file, const std::string& method, double percentile, int64_t images,
         const std::string& part, std::optional<double> most_lost, const fs::path& cache, const Settings& settings,
         nb::handle listener) {
        const QuantizeOptions options{.method = calibration_method_named(method),
                                      .percentile = percentile,
                                      .images = images,
                                      .part = part,
                                      .most_lost = most_lost,
                                      .cache = cache};
        return on_errand(
            false, [trained = TrainedModel{model, overrides_of(settings)}, file, options, listener](Errand& errand) {
              PythonListener told(errand, listener);
              return quantize(trained, file, options, &told);
            });
      },
      nb::arg("model"), nb::arg("file"), nb::arg("method"), nb::arg("percentile"), nb::arg("images"), nb::arg("part"),
      nb::arg("most_lost").none(), nb::arg("cache"), nb::arg("settings"), nb::arg("listener").none(),
      "Writes a model whose convolutions and dense layers are in eight bits as an ONNX file.");
}

}  // namespace gpunn::python
