#include <gpunn/upscale.hpp>

#include <memory>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/experiment_options.hpp"
#include "cli/json.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"
#include "cli/units.hpp"

namespace gpunn::cli {

void add_upscale(CommandLine& line) {
  struct Options {
    std::filesystem::path model;
    std::string backend;
    std::vector<std::string> settings;
    UpscaleRequest request;
  };
  auto options = std::make_shared<Options>();
  Verb verb =
      line.program.add_verb("upscale", "Enlarge images by a trained model of the task super_resolution",
                            {"gpunn upscale runs/espcn_x3/2025-01-02T03-04-05Z small.png --to large.png",
                             "gpunn upscale runs/espcn_x3/2025-01-02T03-04-05Z photos/ --to larger/ --compare",
                             "gpunn upscale runs/edsr_x2/2025-01-02T03-04-05Z huge.jpg --to out.png --tile 256"});
  verb.add_option("model", options->model, "A run folder (its best checkpoint) or a checkpoint file")
      .required()
      .type_name("RUN|CHECKPOINT");
  verb.add_option("images", options->request.inputs,
                  "PNG, JPEG or binary PGM/PPM files of any size, or folders of them")
      .required()
      .type_name("FILE");
  verb.add_option("--to", options->request.to, "The PNG file to write; of several images a folder")
      .required()
      .type_name("FILE.png|DIR");
  verb.add_flag("--compare", options->request.compare,
                "Also write NAME.compare.png: bicubic on the left, the model on the right");
  verb.add_option(
          "--tile", options->request.tile,
          "Rows and columns that the model gets at once: larger images go in parts of this size; 0: whole images")
      .capture_default_str()
      .range(0, 16384)
      .type_name("N");
  verb.add_option("--overlap", options->request.overlap,
                  "Pixels around each part that are computed and not used, so that no border shows")
      .capture_default_str()
      .range(0, 4096)
      .type_name("N");
  add_backend_option(verb, options->backend);
  add_set_option(verb, options->settings);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      const TrainedModel model{options->model, model_overrides(options->settings, options->backend)};
      const std::vector<UpscaledImage> images = upscale(model, options->request);
      Json document = Json::array();
      for (const UpscaledImage& image : images) {
        document.push_back({{"from", image.from.string()},
                            {"to", image.to.string()},
                            {"height", image.height},
                            {"width", image.width},
                            {"tiles", image.tiles},
                            {"seconds", image.seconds}});
        if (line.json) continue;
        put("{}  {}x{} pixels in {}, {} {}\n", printable(image.to.string()), image.width, image.height,
            duration_text(image.seconds), image.tiles, image.tiles == 1 ? "part" : "parts");
      }
      if (line.json) print_json(document);
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
