#include <gpunn/error.hpp>
#include <gpunn/stylize.hpp>

#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/options/damaged_images.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/signals/interrupt.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/status_line.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

Json losses_json(const StyleLosses& losses) {
  return {
      {"total", losses.total}, {"content", losses.content}, {"style", losses.style}, {"variation", losses.variation}};
}

Json image_json(const StylizedImage& image) {
  return {{"to", image.to.string()},
          {"height", image.height},
          {"width", image.width},
          {"steps", image.steps},
          {"first", losses_json(image.first)},
          {"last", losses_json(image.last)},
          {"history", image.history},
          {"seconds", image.seconds},
          {"notes", image.notes}};
}

void print_image(const StylizedImage& image) {
  for (const std::string& note : image.notes) put("note: {}\n", printable(note));
  put("{}  {}x{} pixels, {} steps in {}; loss {:.6g}, at first {:.6g} (content {:.4g}, style {:.4g}, variation "
      "{:.4g})\n",
      printable(image.to.string()), image.width, image.height, image.steps, duration_text(image.seconds),
      image.last.total, image.first.total, image.last.content, image.last.style, image.last.variation);
}

ExitCode paint_images(const TrainedModel& model, PaintRequest& request, bool json) {
  Json document = Json::array();
  DamagedImages damaged;
  request.on_damaged = damaged.listener();
  const std::vector<PaintedImage> images = paint(model, request);
  std::set<std::filesystem::path> files;
  for (const PaintedImage& image : images) files.insert(image.from);
  for (const PaintedImage& image : images) {
    document.push_back({{"from", image.from.string()},
                        {"to", image.to.string()},
                        {"height", image.height},
                        {"width", image.width},
                        {"style", image.style},
                        {"seconds", image.seconds},
                        {"notes", image.notes}});
    if (json) continue;
    for (const std::string& note : image.notes) put("note: {}: {}\n", printable(image.from.string()), printable(note));
    put("{}  {}x{} pixels in {}\n", printable(image.to.string()), image.width, image.height,
        duration_text(image.seconds));
  }
  return damaged.finish(json, std::move(document), "from", request.damaged, files.size());
}

// On a terminal a line that is drawn anew, elsewhere ten lines.
class StyleProgress {
 public:
  explicit StyleProgress(bool quiet) : quiet_(quiet) {}
  ~StyleProgress() { StatusLine::of_stderr().clear(this); }
  StyleProgress(const StyleProgress&) = delete;
  StyleProgress& operator=(const StyleProgress&) = delete;

  void operator()(const StylizeReport& report) {
    if (quiet_) return;
    const std::string text =
        fmt::format("step {} of {}  loss {:.5g}  content {:.4g}  style {:.4g}  {} a step", report.step, report.steps,
                    report.losses.total, report.losses.content, report.losses.style,
                    duration_text(report.seconds / static_cast<double>(report.step)));
    StatusLine& line = StatusLine::of_stderr();
    if (line.terminal().interactive) {
      line.draw(this, text);
    } else if (report.step * 10 / report.steps > told_ || report.step == 1) {
      told_ = report.step * 10 / report.steps;
      line.print(text);
    }
  }

 private:
  bool quiet_;
  int64_t told_ = 0;
};

}  // namespace

void add_stylize(CommandLine& line) {
  struct Options {
    std::filesystem::path model;
    std::vector<std::string> settings;
    StylizeRequest request;
    PaintRequest paint;
    std::optional<int64_t> size;
  };
  auto options = std::make_shared<Options>();
  Verb verb = line.program.add_verb(
      "stylize", "Paint the content of one picture in the style of another, or images by a trained model",
      {"gpunn stylize --content street.jpg --style night.jpg --to painted.png",
       "gpunn stylize --content street.jpg --style night.jpg --to painted.png --features squeezenet --steps 300",
       "gpunn stylize --content street.jpg --style night.jpg --to painted.png --features drawn --original-colours",
       "gpunn stylize runs/style_transfer/2025-01-02T03-04-05Z photos/ --to painted/"});
  StylizeRequest& r = options->request;
  verb.add_option("model", options->model,
                  "A run folder, a checkpoint or an ONNX file of gpunn of the task style_transfer, which paints images "
                  "in one pass")
      .type_name("RUN|CHECKPOINT|ONNX");
  verb.add_option("images", options->paint.inputs,
                  "What it paints: PNG, JPEG or binary PGM/PPM files, or folders of them")
      .type_name("FILE");
  verb.add_option("--content", r.content, "The picture whose content the result has").type_name("FILE");
  verb.add_option("--style", r.style, "The picture whose style the result has").type_name("FILE");
  verb.add_option(
          "--style-number", options->paint.style,
          "Of a model of several styles the only one to paint, counted from 0. Default: all, as NAME.style0.png")
      .type_name("N");
  verb.add_option("--to", r.to, "The PNG file to write; of several images a folder")
      .required()
      .type_name("FILE.png|DIR");
  verb.add_option("--features", r.features,
                  "The network that compares pictures: vgg19 or squeezenet, which need weights, drawn, which needs "
                  "none; or a run folder, a checkpoint or an ONNX file")
      .capture_default_str()
      .type_name("NAME|FILE");
  verb.add_option("--weights", r.weights,
                  "Weights of vgg19 or squeezenet with torchvision's names. Default: NAME*.safetensors in "
                  "$GPUNN_DATA_DIR or its folder weights")
      .type_name("FILE.safetensors");
  verb.add_choice("--colours", r.colours,
                  {{"centred", FeatureColours::centred}, {"standardised", FeatureColours::standardised}},
                  "How the weights expect colours: 0 to 255 less ImageNet's mean, as Caffe's, or 0 to 1 standardised, "
                  "as torchvision's");
  verb.add_option("--steps", r.steps, "Steps of the optimizer").capture_default_str().range(1, 1000000).type_name("N");
  verb.add_option("--optimizer", r.optimizer, "Method that takes the steps")
      .capture_default_str()
      .one_of({"lbfgs", "adam"});
  verb.add_option("--learning-rate", r.learning_rate, "Default: 1 of lbfgs, 0.02 of adam").type_name("NUMBER");
  verb.add_option("--history", r.history, "Steps that lbfgs remembers; each takes the memory of two images")
      .capture_default_str()
      .range(1, 100)
      .type_name("N");
  verb.add_option("--content-weight", r.content_weight, "Of the content's loss. Default: the network's own")
      .type_name("NUMBER");
  verb.add_option("--style-weight", r.style_weight, "Of the style's loss. Default: the network's own")
      .type_name("NUMBER");
  verb.add_option("--variation-weight", r.variation_weight, "Of the differences between neighbouring pixels")
      .capture_default_str()
      .type_name("NUMBER");
  verb.add_option("--content-layer", r.content_layers, "Compares contents here in place of the network's own layers")
      .repeated()
      .type_name("LAYER");
  verb.add_option("--style-layer", r.style_layers, "Compares styles here in place of the network's own layers")
      .repeated()
      .type_name("LAYER");
  verb.add_flag("--original-colours", r.original_colours, "Keep the colours of the content, and change its luma alone");
  verb.add_flag("--from-noise", r.from_noise, "Start from noise in place of the content");
  verb.add_option("--seed", r.seed, "Seed of noise, and of drawn filters").capture_default_str().type_name("N");
  verb.add_option("--size", options->size,
                  "Pixels that the longer side of the content is scaled to; 0: as it is. Default: 512, of a model 0")
      .range(0, 16384)
      .type_name("N");
  verb.add_option("--style-size", r.style_size, "The same of the style picture; 0: as the content's")
      .capture_default_str()
      .range(0, 16384)
      .type_name("N");
  verb.add_option("--preview-every", r.preview_every, "Steps between two previews, NAME.step100.png; 0: none")
      .capture_default_str()
      .not_negative()
      .type_name("N");
  verb.add_choice(
      "--precision", r.precision, {{"fp32", Precision::fp32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}},
      "What the factors of products are rounded to, where the backend has that; bf16: also what lies between "
      "the layers of the network");
  verb.add_option("--threads", r.threads, "Host threads; 0: the backend's choice")
      .capture_default_str()
      .range(0, 1024)
      .type_name("N");
  add_damaged_option(verb, options->paint.damaged);
  add_backend_option(verb, r.backend);
  add_model_settings(verb, options->settings);
  add_quiet_flag(verb, line);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      StylizeRequest& request = options->request;
      if (!options->model.empty()) {
        if (!request.content.empty() || !request.style.empty()) {
          throw Error("a model paints the images that follow it: leave out --content and --style", ExitCode::usage);
        }
        const TrainedModel model{options->model, model_overrides(options->settings, request.backend)};
        options->paint.to = request.to;
        options->paint.size = options->size.value_or(0);
        options->paint.original_colours = request.original_colours;
        return paint_images(model, options->paint, line.json);
      }
      if (request.content.empty() || request.style.empty()) {
        throw Error("expected --content and --style, or a trained model and images", ExitCode::usage);
      }
      if (request.backend.empty()) request.backend = "auto";
      request.size = options->size.value_or(request.size);
      const InterruptGuard interrupt;
      InterruptGuard::begin();
      StyleProgress progress(line.quiet || line.json);
      const StylizedImage image = stylize(
          request, [&](const StylizeReport& report) { progress(report); },
          [] { return InterruptGuard::flag()->load(); });
      StatusLine::of_stderr().clear();
      if (line.json) {
        print_json(image_json(image));
      } else {
        print_image(image);
      }
      return image.steps < request.steps ? ExitCode::interrupted : ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
