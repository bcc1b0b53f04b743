#include <gpunn/quantization.hpp>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

void print_quantization(const QuantizeReport& report) {
  Table table({{"TENSOR"}, {"SCALE", Align::right}, {"ZERO", Align::right}, {"SIGNAL/ERROR", Align::right}});
  for (const QuantizedLayer& layer : report.layers) {
    table.add({printable(layer.name), fmt::format("{:.5g}", layer.scale), std::to_string(layer.zero_point),
               fmt::format("{:.1f} dB", layer.decibels)});
  }
  put("{}\n", table.text(terminal_of(STDOUT_FILENO).colour));
  put("ranges    of {} images{}\n", report.images, report.from_cache ? ", from the cache" : "");
  put("int8      {} convolutions, {} dense layer{}\n", report.convolutions.size(), report.dense.size(),
      report.dense.size() == 1 ? "" : "s");
  if (report.metric) {
    const Metric& metric = *report.metric;
    put("{:<8}  {}, before {}, on {} {} rows: {} {:.3g} {}\n", metric.title, score_text({metric, *report.after}),
        score_text({metric, *report.before}), count_text(report.rows), name_of(report.part),
        *report.lost > 0 ? "loses" : "gains", std::abs(*report.lost), metric.is_share ? "points" : "%");
  } else {
    put("loss      not measured: {}\n", report.not_measured);
  }
  put("ONNX      {}\n", printable(report.file.string()));
}

}  // namespace

void add_quantize(CommandLine& line) {
  struct Options {
    std::filesystem::path model, file;
    std::string backend, data;
    std::vector<std::string> settings;
    QuantizeOptions quantize;
  };
  auto options = std::make_shared<Options>();
  Verb verb = line.program.add_verb(
      "quantize", "Put the convolutions and dense layers of a trained model in eight bits, and say what that costs",
      {"gpunn quantize runs/resnet18_cifar10/2025-01-02T03-04-05Z --to resnet18_int8.onnx",
       "gpunn quantize resnet18.onnx --data experiments/resnet18_cifar10.yaml --to int8.onnx --method percentile"});
  verb.add_option("model", options->model, "A run folder (its best checkpoint), a checkpoint or an ONNX file")
      .required()
      .type_name("RUN|CHECKPOINT|ONNX");
  verb.add_option("--to", options->file, "The file to write").required().type_name("FILE.onnx");
  const std::vector<std::pair<std::string, CalibrationMethod>> methods{{"maximum", CalibrationMethod::maximum},
                                                                       {"entropy", CalibrationMethod::entropy},
                                                                       {"percentile", CalibrationMethod::percentile}};
  verb.add_choice("--method", options->quantize.method, methods,
                  "How the ranges follow from the numbers of the calibration");
  verb.add_option("--percentile", options->quantize.percentile,
                  "Of --method percentile: the share of numbers within the range, in percent")
      .capture_default_str()
      .type_name("P");
  verb.add_option("--images", options->quantize.images, "Samples of the calibration, spread over the part")
      .capture_default_str()
      .range(8, 1 << 24)
      .type_name("N");
  verb.add_option("--part", options->quantize.part, "The part of the data that they are of")
      .capture_default_str()
      .one_of({"train", "validation", "test"});
  verb.add_option("--most-lost", options->quantize.most_lost,
                  "The most that the task's metric may lose on the test data: points of a metric in percent, else "
                  "percent of its value. If it loses more, nothing is written. Default: 0.4")
      .type_name("POINTS");
  verb.add_option("--cache", options->quantize.cache, "Keep the ranges in this file, and take them from it")
      .type_name("FILE.json");
  add_data_option(verb, options->data);
  add_backend_option(verb, options->backend);
  add_model_settings(verb, options->settings);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      const TrainedModel model{options->model, model_overrides(options->settings, options->backend, options->data)};
      Quiet announcements;
      const QuantizeReport report = quantize(model, options->file, options->quantize, &announcements);
      if (line.json) {
        print_json(to_json(report));
      } else {
        print_quantization(report);
      }
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
