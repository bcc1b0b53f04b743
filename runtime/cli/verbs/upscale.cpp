#include <gpunn/error.hpp>
#include <gpunn/upscale.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/options/damaged_images.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/options/image_size.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

struct UpscaleOptions {
  std::filesystem::path model;
  std::string backend, frames;
  std::vector<std::string> settings;
  UpscaleRequest request;

  bool stream() const {
    const auto& inputs = request.inputs;
    return inputs.empty() ? !frames.empty() : inputs.size() == 1 && inputs[0] == "-";
  }
};

void write_frames(std::string_view bytes) {
  write_to_stdout(bytes);
  flush_stdout();
  if (const int error = stdout_error(); error != 0) {
    throw Error("can't write the frames: " + std::generic_category().message(error));
  }
}

ExitCode enlarge_stream(const TrainedModel& model, const UpscaleOptions& options, bool json) {
  if (options.request.compare) throw Error("--compare is for images, not for a stream of frames", ExitCode::usage);
  FrameRequest request{.rgb = {}, .tile = options.request.tile.value_or(0), .overlap = options.request.overlap};
  if (!options.frames.empty()) request.rgb = image_size("--frames", options.frames);
  std::ios::sync_with_stdio(false);
  const bool to_stdout = options.request.to == "-";
  const UpscaledFrames done = to_stdout ? upscale_frames(model, request, std::cin, write_frames)
                                        : upscale_frames(model, request, std::cin, options.request.to);
  const Json document = {{"frames", done.frames},
                         {"height", done.height},
                         {"width", done.width},
                         {"seconds", done.seconds},
                         {"notes", done.notes}};
  std::string text =
      json ? document.dump() + "\n"
           : fmt::format("{} frames of {}x{} pixels, {} each in the model\n", done.frames, done.width, done.height,
                         duration_text(done.seconds / static_cast<double>(std::max<int64_t>(done.frames, 1))));
  for (const std::string& note : done.notes) {
    if (!json) text += "note: " + printable(note) + "\n";
  }
  if (to_stdout) {
    std::cerr << text;
  } else {
    write_to_stdout(text);
  }
  return ExitCode::done;
}

ExitCode enlarge_images(const TrainedModel& model, UpscaleOptions& options, bool json) {
  if (!options.frames.empty()) throw Error("--frames is for a stream on stdin: leave out the images", ExitCode::usage);
  Json document = Json::array();
  DamagedImages damaged;
  options.request.on_damaged = damaged.listener();
  const std::vector<UpscaledImage> images = upscale(model, options.request);
  for (const UpscaledImage& image : images) {
    document.push_back({{"from", image.from.string()},
                        {"to", image.to.string()},
                        {"height", image.height},
                        {"width", image.width},
                        {"tiles", image.tiles},
                        {"notes", image.notes},
                        {"seconds", image.seconds}});
    if (json) continue;
    put("{}  {}x{} pixels in {}, {} {}\n", printable(image.to.string()), image.width, image.height,
        duration_text(image.seconds), image.tiles, image.tiles == 1 ? "part" : "parts");
    for (const std::string& note : image.notes) put("note: {}\n", printable(note));
  }
  return damaged.finish(json, std::move(document), "from", options.request.damaged, images.size());
}

}  // namespace

void add_upscale(CommandLine& line) {
  auto options = std::make_shared<UpscaleOptions>();
  Verb verb =
      line.program.add_verb("upscale", "Enlarge images by a trained model of the task super_resolution",
                            {"gpunn upscale runs/espcn_x3/2025-01-02T03-04-05Z small.png --to large.png",
                             "gpunn upscale runs/espcn_x3/2025-01-02T03-04-05Z photos/ --to larger/ --compare",
                             "gpunn upscale runs/edsr_x2/2025-01-02T03-04-05Z huge.jpg --to out.png --tile 256",
                             "ffmpeg -i a.mp4 -f yuv4mpegpipe - | gpunn upscale runs/espcn_x2/2025-01-02T03-04-05Z - "
                             "--to - | ffmpeg -i - larger.mp4"});
  verb.add_option("model", options->model, "A run folder (its best checkpoint), a checkpoint or an ONNX file of gpunn")
      .required()
      .type_name("RUN|CHECKPOINT|ONNX");
  verb.add_option("images", options->request.inputs,
                  "PNG, JPEG or binary PGM/PPM files of any size, or folders of them; -: a stream of frames on stdin, "
                  "Y4M of 8 bits")
      .type_name("FILE");
  verb.add_option("--to", options->request.to,
                  "The PNG file to write; of several images a folder; of frames a file or -: stdout")
      .required()
      .type_name("FILE|DIR");
  verb.add_option("--frames", options->frames,
                  "The stream on stdin is raw frames of this size, three bytes a pixel (rgb24), as is what is written")
      .type_name("WIDTHxHEIGHT");
  verb.add_flag("--compare", options->request.compare,
                "Also write NAME.compare.png: bicubic on the left, the model on the right");
  verb.add_option(
          "--tile", options->request.tile,
          "Rows and columns that the model gets at once: larger images go in parts of this size; 0 means whole images. "
          "Default: 512, or 0 for a model that sees whole images, and for frames")
      .range(0, 16384)
      .type_name("N");
  verb.add_option("--overlap", options->request.overlap,
                  "Pixels around each part that are computed and not used. Default: as far as the model's layers see, "
                  "so that the result is that of the whole image")
      .range(0, 4096)
      .type_name("N");
  add_damaged_option(verb, options->request.damaged);
  add_backend_option(verb, options->backend);
  add_model_settings(verb, options->settings);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      const TrainedModel model{options->model, model_overrides(options->settings, options->backend)};
      return options->stream() ? enlarge_stream(model, *options, line.json)
                               : enlarge_images(model, *options, line.json);
    };
  });
}

}  // namespace gpunn::cli
