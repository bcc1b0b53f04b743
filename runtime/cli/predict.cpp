#include <gpunn/training.hpp>

#include <memory>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/experiment_options.hpp"
#include "cli/json.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"
#include "cli/units.hpp"

namespace gpunn::cli {

namespace {

void print_prediction(const Prediction& prediction) {
  put("{}", printable(prediction.source));
  if (prediction.label) put(" (label {})", *prediction.label);
  put("\n");
  for (const NamedValue& one : prediction.values) put("  {:>12.6g}  {}\n", one.value, printable(one.name));
  for (const ClassProbability& one : prediction.top) {
    const std::string name = one.name.empty() || one.name == std::to_string(one.index)
                                 ? std::to_string(one.index)
                                 : fmt::format("{} {}", one.index, printable(one.name));
    put("  {:>8}  {}\n", percent_text(one.probability), name);
  }
}

}  // namespace

void add_predict(CommandLine& line) {
  struct Options {
    std::filesystem::path model;
    std::string backend;
    std::vector<std::string> settings;
    PredictRequest request;
  };
  auto options = std::make_shared<Options>();
  Verb verb = line.program.add_verb("predict", "Say what a trained model makes of images, rows of tables, or test rows",
                                    {"gpunn predict runs/lenet_mnist/2025-01-02T03-04-05Z seven.png",
                                     "gpunn predict runs/photos/2025-01-02T03-04-05Z new_photos/ 'more/*.jpg'",
                                     "gpunn predict runs/iris/2025-01-02T03-04-05Z flowers.csv --json",
                                     "gpunn predict runs/lenet_mnist/2025-01-02T03-04-05Z --row 0 --row 7 --top 5"});
  verb.add_option("model", options->model, "A run folder (its best checkpoint), a checkpoint or an ONNX file")
      .required()
      .type_name("RUN|CHECKPOINT|ONNX");
  verb.add_option("inputs", options->request.inputs,
                  "PNG, JPEG or binary PGM/PPM files, folders of them, CSV files with a row of features a line, or "
                  "patterns of such")
      .type_name("FILE");
  verb.add_option("--row", options->request.rows,
                  "Row of the test data, which is read for it, counted from 0; may be repeated")
      .repeated()
      .type_name("N");
  verb.add_option("--top", options->request.top_k, "Classes to print for each")
      .capture_default_str()
      .range(1, 1 << 20)
      .type_name("K");
  add_backend_option(verb, options->backend);
  add_set_option(verb, options->settings);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      if (options->request.inputs.empty() && options->request.rows.empty()) {
        throw Error("predict wants files or rows: gpunn predict RUN seven.png, or gpunn predict RUN --row 0",
                    ExitCode::usage);
      }
      TrainedModel model{options->model, parse_settings(options->settings)};
      if (!options->backend.empty()) model.overrides.push_back({"backend", options->backend});
      const std::vector<Prediction> predictions = predict(model, options->request);
      if (line.json) {
        Json document = Json::array();
        for (const Prediction& prediction : predictions) document.push_back(to_json(prediction));
        print_json(document);
      } else {
        for (const Prediction& prediction : predictions) print_prediction(prediction);
      }
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
