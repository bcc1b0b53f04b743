// Explains image files.
#include <gpunn/error.hpp>
#include <gpunn/explain.hpp>
#include <gpunn/model.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/files.hpp"
#include "common/parse_number.hpp"
#include "common/text.hpp"
#include "data/folders/damaged_files.hpp"
#include "inference/results/result_files.hpp"
#include "inference/samples/image_sample.hpp"

namespace gpunn {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostNames = 20;  // that an error lists

std::string names_of(const std::vector<std::string>& classes) {
  const auto listed = static_cast<std::ptrdiff_t>(std::min(kMostNames, classes.size()));
  std::string text = join({classes.begin(), classes.begin() + listed}, ", ");
  if (classes.size() > kMostNames) text += " and " + std::to_string(classes.size() - kMostNames) + " more";
  return text;
}

// Where the picture of each image goes; empty where none is asked for.
std::vector<fs::path> pictures(const ExplainRequest& request, const std::vector<inference::ImageFile>& images,
                               const fs::path& to) {
  if (to.empty()) return std::vector<fs::path>(images.size());
  return inference::result_files(request.inputs, images, to);
}

void write_picture(const fs::path& file, const std::string& png) {
  if (file.has_parent_path()) make_folders(file.parent_path());
  write_atomically(file, png);
}

}  // namespace

std::string_view name_of(ExplainMethod method) { return method == ExplainMethod::gradcam ? "gradcam" : "gradcam++"; }

std::vector<std::string> explain_methods() {
  return {std::string(name_of(ExplainMethod::gradcam)), std::string(name_of(ExplainMethod::gradcam_plus_plus))};
}

ExplainMethod explain_method_named(const std::string& name) {
  for (const ExplainMethod method : {ExplainMethod::gradcam, ExplainMethod::gradcam_plus_plus}) {
    if (name == name_of(method)) return method;
  }
  throw Error("there is no method " + in_quotes(name) + did_you_mean_or_list(name, explain_methods()), ExitCode::usage);
}

int64_t find_class(const ModelInfo& info, std::string_view text) {
  const std::vector<std::string>& names = info.fields.target().names;
  if (const auto found = std::ranges::find(names, text); found != names.end()) return found - names.begin();
  const std::optional<int64_t> number = parse_number<int64_t>(text);
  if (number && *number >= 0 && (names.empty() || *number < static_cast<int64_t>(names.size()))) return *number;
  if (number && !names.empty()) {
    throw Error("the model has no class " + std::string(text) + "; classes count from 0 to " +
                    std::to_string(names.size() - 1) + ": " + names_of(names),
                ExitCode::usage);
  }
  if (names.empty()) {
    throw Error("the model's classes have no names; expected a number from 0, found " + in_quotes(text),
                ExitCode::usage);
  }
  throw Error(
      "the model has no class " + in_quotes(text) + "; its classes: " + names_of(names) + did_you_mean(text, names),
      ExitCode::usage);
}

std::vector<ExplainedImage> explain(const TrainedModel& trained, const ExplainRequest& request) {
  if (request.inputs.empty()) throw Error("nothing to explain: give images or folders of them", ExitCode::usage);
  const std::vector<inference::ImageFile> images = inference::images_in(request.inputs);
  const std::vector<fs::path> overlays = pictures(request, images, request.overlay);
  const std::vector<fs::path> heatmaps = pictures(request, images, request.heatmap);
  std::vector<fs::path> results = overlays;
  results.insert(results.end(), heatmaps.begin(), heatmaps.end());
  std::erase(results, fs::path());
  inference::require_own_places(images, results, "--overlay or --heatmap");

  const Model model = Model::load(trained.path, {.max_batch = 1, .calls = 1, .overrides = trained.overrides});
  const Field& input = model.info().fields.input();
  ExplainOptions options{.layer = request.layer, .method = request.method};
  if (!request.class_text.empty()) options.class_index = find_class(model.info(), request.class_text);
  std::vector<ExplainedImage> explained;
  data::DamagedFiles damaged(request.damaged);
  for (std::size_t i = 0; i < images.size(); ++i) {
    std::vector<uint8_t> image;
    const auto read = [&](std::string* damage) {
      image = inference::image_sample(images[i].file, input, damage).values;
    };
    if (!damaged.sound(images[i].file, read)) continue;
    const Shape shape = batch_shape(input.type.shape, 1);
    Explanation explanation =
        model.explain({.name = input.name, .dtype = DType::u8, .shape = shape, .data = image.data()}, options).front();
    if (!overlays[i].empty()) write_picture(overlays[i], overlay_png(explanation, image));
    if (!heatmaps[i].empty()) write_picture(heatmaps[i], heatmap_png(explanation));
    explained.push_back({images[i].file, overlays[i], heatmaps[i], std::move(explanation)});
  }
  damaged.report(request.on_damaged);
  return explained;
}

}  // namespace gpunn
