#include <gpunn/explain.hpp>

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/options/damaged_images.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

Json explanation_json(const ExplainedImage& image) {
  const Explanation& one = image.explanation;
  Json document = {{"source", image.from.string()},
                   {"class", one.class_index},
                   {"name", one.class_name},
                   {"score", one.score},
                   {"layer", one.layer}};
  if (!image.overlay.empty()) document["overlay"] = image.overlay.string();
  if (!image.heatmap.empty()) document["heatmap"] = image.heatmap.string();
  return document;
}

void print_explanation(const ExplainedImage& image) {
  const Explanation& one = image.explanation;
  put("{}\n", printable(image.from.string()));
  const bool is_named = !one.class_name.empty() && one.class_name != std::to_string(one.class_index);
  const std::string score = one.is_probability ? percent_text(one.score) : fmt::format("{:.6g}", one.score);
  put("  {:>8}  {}{}, by the layer {}\n", score, one.class_index, is_named ? " " + printable(one.class_name) : "",
      printable(one.layer));
  for (const auto& file : {image.overlay, image.heatmap}) {
    if (!file.empty()) put("  {}\n", printable(file.string()));
  }
}

}  // namespace

void add_explain(CommandLine& line) {
  struct Options {
    std::filesystem::path model;
    std::string backend;
    std::vector<std::string> settings;
    ExplainRequest request;
  };
  auto options = std::make_shared<Options>();
  Verb verb = line.program.add_verb(
      "explain", "Show which parts of an image speak for a class, by Grad-CAM",
      {"gpunn explain runs/lenet_mnist/2025-01-02T03-04-05Z seven.png --overlay why.png",
       "gpunn explain runs/photos/2025-01-02T03-04-05Z cat.jpg --class dog --layer conv2 --overlay why.png",
       "gpunn explain resnet18.onnx photos/ --method gradcam++ --overlay overlays/ --heatmap maps/ --json"});
  verb.add_option("model", options->model, "A run folder (its best checkpoint), a checkpoint or an ONNX file")
      .required()
      .type_name("RUN|CHECKPOINT|ONNX");
  verb.add_option("images", options->request.inputs, "PNG, JPEG or binary PGM/PPM files, or folders of them")
      .required()
      .type_name("FILE");
  verb.add_option("--overlay", options->request.overlay,
                  "PNG file for the image with the map over it; for several images a folder")
      .type_name("FILE.png|DIR");
  verb.add_option("--heatmap", options->request.heatmap, "The same for the map alone").type_name("FILE.png|DIR");
  verb.add_option("--class", options->request.class_text,
                  "The class, by its name or number, instead of the one that the model predicts")
      .type_name("NAME|N");
  verb.add_option("--layer", options->request.layer,
                  "Layer whose output is weighted; default: the last with more than one row or column")
      .type_name("NAME");
  std::vector<std::pair<std::string, ExplainMethod>> methods;
  for (const std::string& name : explain_methods()) methods.emplace_back(name, explain_method_named(name));
  verb.add_choice("--method", options->request.method, methods, "Method that weights its channels");
  add_damaged_option(verb, options->request.damaged);
  add_backend_option(verb, options->backend);
  add_model_settings(verb, options->settings);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      ExplainRequest& request = options->request;
      if (request.overlay.empty() && request.heatmap.empty()) {
        throw Error("explain needs a file to write: --overlay why.png, --heatmap map.png, or both", ExitCode::usage);
      }
      const TrainedModel model{options->model, model_overrides(options->settings, options->backend)};
      DamagedImages damaged;
      request.on_damaged = damaged.listener();
      const std::vector<ExplainedImage> images = explain(model, request);
      Json document = Json::array();
      if (line.json) {
        for (const ExplainedImage& image : images) document.push_back(explanation_json(image));
      } else {
        for (const ExplainedImage& image : images) print_explanation(image);
      }
      return damaged.finish(line.json, std::move(document), "source", request.damaged, images.size());
    };
  });
}

}  // namespace gpunn::cli
