#include <gpunn/detection.hpp>
#include <gpunn/error.hpp>
#include <gpunn/model.hpp>
#include <gpunn/segmentation.hpp>
#include <gpunn/training.hpp>
#include <gpunn/watch.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/options/damaged_images.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/signals/stop_signal.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"
#include "common/significant_digits.hpp"
#include "common/system_call.hpp"

namespace gpunn::cli {

namespace {

void print_prediction(const Prediction& prediction, double least_score) {
  put("{}", printable(prediction.source));
  if (prediction.label) put(" (label {})", *prediction.label);
  put("\n");
  for (const DetectedBox& one : prediction.boxes) {
    if (one.score < least_score) continue;
    put("  {:>8}  {}  {:.0f},{:.0f} to {:.0f},{:.0f}\n", percent_text(one.score), printable(one.name), one.left,
        one.top, one.right, one.bottom);
  }
  constexpr int kUsualDigits = 6;
  for (const NamedValue& one : prediction.values) {
    const int digits = digits_beyond(one.value, one.stddev, kUsualDigits);
    put("  {:>12.{}g}  {}\n", one.value, digits, printable(one.name));
  }
  for (const ClassProbability& one : prediction.top) {
    const std::string name = one.name.empty() || one.name == std::to_string(one.index)
                                 ? std::to_string(one.index)
                                 : fmt::format("{} {}", one.index, printable(one.name));
    put("  {:>8}  {}\n", percent_text(one.probability), name);
  }
}

// Writes each image with its boxes or its label map, under its own name in a folder.
void draw(const std::vector<Prediction>& predictions, const std::filesystem::path& folder, double least_score) {
  std::filesystem::create_directories(folder);
  for (const Prediction& one : predictions) {
    const std::filesystem::path image = one.source;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(image, ignored)) continue;  // a row of the test data
    const std::filesystem::path to = folder / image.filename().replace_extension(".png");
    if (one.map) {
      write_with_map(image, *one.map, to);
    } else {
      write_with_boxes(image, one.boxes, to, least_score);
    }
  }
}

Model load_for_lines(const std::filesystem::path& path, const std::vector<std::string>& settings,
                     const std::string& backend) {
  const TrainedModel trained{path, model_overrides(settings, backend)};
  return Model::load(trained.path, {.calls = 1, .overrides = trained.overrides});
}

// Prints a line of JSON for each prediction of a file, or for its error. Returns false if there is an error.
bool print_lines(const Model& model, const std::filesystem::path& file, PredictRequest request) {
  bool done = true;
  request.inputs = {file};
  try {
    for (const Prediction& prediction : predict(model, request)) {
      print_json_line(to_json(prediction));
    }
  } catch (const DeviceLostError&) {
    throw;
  } catch (const Error& error) {
    print_json_line({{"source", file.string()}, {"error", error.what()}});
    done = false;
  }
  flush_stdout();
  if (stdout_error() != 0) throw Error("stdout can't be written: " + reason_of(stdout_error()));
  return done;
}

// Predicts the files whose paths come on stdin, one on each line.
ExitCode predict_stdin(const Model& model, const PredictRequest& request) {
  bool all = true;
  for (std::string path; std::getline(std::cin, path);) {
    if (!path.empty()) all = print_lines(model, path, request) && all;
  }
  return all ? ExitCode::done : ExitCode::failed;
}

}  // namespace

void add_predict(CommandLine& line) {
  struct Options {
    std::filesystem::path model;
    std::string backend;
    std::vector<std::string> settings;
    PredictRequest request;
    std::filesystem::path watched;
    bool skip_existing = false;
    std::filesystem::path drawn, coco;
    std::vector<std::filesystem::path> annotations;
    int64_t least_score = 30;
    bool full_size = false;
    FullSize tiles;
    bool is_stdin() const { return request.inputs.size() == 1 && request.inputs.front() == "-"; }
  };
  auto options = std::make_shared<Options>();
  Verb verb = line.program.add_verb("predict", "Predict images, rows of tables, or test rows with a trained model",
                                    {"gpunn predict runs/lenet_mnist/2025-01-02T03-04-05Z seven.png",
                                     "gpunn predict runs/photos/2025-01-02T03-04-05Z new_photos/ 'more/*.jpg'",
                                     "gpunn predict runs/iris/2025-01-02T03-04-05Z flowers.csv --json",
                                     "gpunn predict runs/lenet_mnist/2025-01-02T03-04-05Z --row 0 --row 7 --top 5",
                                     "find photos -name '*.jpg' | gpunn predict runs/photos/2025-01-02T03-04-05Z -",
                                     "gpunn predict runs/photos/2025-01-02T03-04-05Z --watch incoming/"});
  verb.add_option("model", options->model, "A run folder (its best checkpoint), a checkpoint or an ONNX file")
      .required()
      .type_name("RUN|CHECKPOINT|ONNX");
  verb.add_option(
          "inputs", options->request.inputs,
          "PNG, JPEG or binary PGM/PPM files, folders of them, CSV files with a row of features on each line, or "
          "patterns of such names; '-' alone: read paths from stdin, one on each line, and answer with lines of JSON")
      .type_name("FILE");
  verb.add_option("--row", options->request.rows, "Row of the test data, counted from 0; may be repeated")
      .repeated()
      .type_name("N");
  verb.add_option("--top", options->request.top_k, "Classes to print for each")
      .capture_default_str()
      .range(1, 1 << 20)
      .type_name("K");
  verb.add_option(
          "--watch", options->watched,
          "Predict each image in a folder, and each new one as soon as it is complete, as a line of JSON, until Ctrl-C")
      .type_name("DIR")
      .excludes("inputs")
      .excludes("--row");
  verb.add_flag("--skip-existing", options->skip_existing, "With --watch: only new images").needs("--watch");
  verb.add_option("--draw", options->drawn,
                  "Detection and segmentation: write each image with its boxes or its label map to this folder, as PNG")
      .type_name("DIR");
  verb.add_option("--least-score", options->least_score,
                  "Detection: leave out boxes with a lower score; --json and --coco contain all")
      .capture_default_str()
      .range(0, 100)
      .type_name("PERCENT");
  verb.add_option("--coco", options->coco,
                  "Detection and segmentation: write the boxes or label maps as a file of COCO's results")
      .type_name("FILE.json");
  add_full_size_options(verb, options->full_size, options->tiles.overlap,
                        "Segmentation: the model gets each image in tiles, instead of the whole scaled to one sample");
  add_damaged_option(verb, options->request.damaged);
  verb.add_option("--annotations", options->annotations,
                  "COCO's annotations with the ids of the images and categories for --coco; may be repeated. Default: "
                  "those of the run's data")
      .repeated()
      .needs("--coco")
      .type_name("FILE.json");
  add_backend_option(verb, options->backend);
  add_model_settings(verb, options->settings);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      if (options->full_size) options->request.full_size = options->tiles;
      const PredictRequest each{.inputs = {},
                                .rows = {},
                                .top_k = options->request.top_k,
                                .full_size = options->request.full_size,
                                .damaged = options->request.damaged};
      if (!options->watched.empty()) {
        StopSignal stop;  // before the threads start, since they must not receive the signal
        const Model model = load_for_lines(options->model, options->settings, options->backend);
        watch_images(options->watched, {.skip_existing = options->skip_existing, .stop = stop.descriptor()},
                     [&](const std::filesystem::path& image) { print_lines(model, image, each); });
        return ExitCode::done;
      }
      if (options->is_stdin() && options->request.rows.empty()) {
        return predict_stdin(load_for_lines(options->model, options->settings, options->backend), each);
      }
      if (std::ranges::find(options->request.inputs, "-") != options->request.inputs.end()) {
        throw Error("'-', the paths on stdin, stands alone: without other files, and without --row", ExitCode::usage);
      }
      if (options->request.inputs.empty() && options->request.rows.empty()) {
        throw Error("predict needs files or rows: gpunn predict RUN seven.png, or gpunn predict RUN --row 0",
                    ExitCode::usage);
      }
      const TrainedModel model{options->model, model_overrides(options->settings, options->backend)};
      DamagedImages damaged;
      options->request.on_damaged = damaged.listener();
      const std::vector<Prediction> predictions = predict(model, options->request);
      const double least_score = static_cast<double>(options->least_score) / 100;
      if (!options->drawn.empty()) draw(predictions, options->drawn, least_score);
      if (!options->coco.empty()) {
        Quiet announcements;
        for (const std::string& note : write_coco_results(model, predictions, options->coco, options->annotations)) {
          announcements.on_message(note);
        }
      }
      Json document = Json::array();
      if (line.json) {
        for (const Prediction& prediction : predictions) document.push_back(to_json(prediction));
      } else {
        for (const Prediction& prediction : predictions) print_prediction(prediction, least_score);
      }
      return damaged.finish(line.json, std::move(document), "source", options->request.damaged, predictions.size());
    };
  });
}

}  // namespace gpunn::cli
