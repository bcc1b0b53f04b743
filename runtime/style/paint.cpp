#include <gpunn/error.hpp>
#include <gpunn/stylize.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "common/text.hpp"
#include "data/folders/damaged_files.hpp"
#include "inference/pictures/content_picture.hpp"
#include "inference/pictures/pictures.hpp"
#include "inference/results/result_files.hpp"
#include "inference/tiles/any_size.hpp"
#include "tasks/task.hpp"

namespace gpunn {

namespace fs = std::filesystem;
using data::Planes;
using inference::kMultipleOfSides;

namespace {

// The image with its last row and column repeated, so that its sides are multiples.
Planes widened(const Planes& image) {
  const auto up = [](int64_t side) { return (side + kMultipleOfSides - 1) / kMultipleOfSides * kMultipleOfSides; };
  Planes wide{image.channels, up(image.height), up(image.width)};
  wide.values.reserve(static_cast<std::size_t>(wide.channels) * wide.plane());
  for (int64_t c = 0; c < wide.channels; ++c) {
    const std::span<const float> plane = image.channel(c);
    for (int64_t y = 0; y < wide.height; ++y) {
      for (int64_t x = 0; x < wide.width; ++x) {
        const int64_t from = std::min(y, image.height - 1) * image.width + std::min(x, image.width - 1);
        wide.values.push_back(plane[static_cast<std::size_t>(from)]);
      }
    }
  }
  return wide;
}

Planes top_left(const Planes& image, int64_t height, int64_t width) {
  Planes part{image.channels, height, width};
  for (int64_t c = 0; c < image.channels; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      const auto row =
          image.channel(c).subspan(static_cast<std::size_t>(y * image.width), static_cast<std::size_t>(width));
      part.values.insert(part.values.end(), row.begin(), row.end());
    }
  }
  return part;
}

// How many styles the model's layers know.
int64_t styles_of(const Experiment& experiment) {
  int64_t styles = 1;
  for (const LayerSpec& layer : experiment.model.layers) {
    if (layer.type != "conditional_instance_norm") continue;
    for (const LayerParameter& parameter : layer.parameters) {
      if (parameter.name == "styles") styles = std::max<int64_t>(styles, std::stoll(parameter.values.front()));
    }
  }
  return styles;
}

int64_t styles_of(const TrainedModel& trained) {
  const inference::AnySize model(trained);
  if (model.info().task != "style_transfer") {
    throw Error(trained.path.string() + ": the model is of the task " + model.info().task +
                    "; images are painted by one of style_transfer. Use `gpunn " +
                    tasks::find(model.info().task).command(shell_word(trained.path.string())) + "`",
                ExitCode::usage);
  }
  return styles_of(model.experiment());
}

// Where the picture in a style is written.
fs::path of_style(const fs::path& to, int64_t style, const PaintRequest& request, int64_t styles) {
  if (styles == 1 || request.style) return to;
  return fs::path(to).replace_extension(".style" + std::to_string(style) + ".png");
}

}  // namespace

std::vector<PaintedImage> paint(const TrainedModel& trained, const PaintRequest& request) {
  if (request.inputs.empty()) throw Error("nothing to paint: give images or folders of them", ExitCode::usage);
  const std::vector<inference::ImageFile> images = inference::images_in(request.inputs);
  const std::vector<fs::path> results = inference::result_files(request.inputs, images, request.to);
  inference::require_own_places(images, results, "--to");
  const int64_t styles = styles_of(trained);
  if (request.style && (*request.style < 0 || *request.style >= styles)) {
    throw Error("the model paints " + std::to_string(styles) + (styles == 1 ? " style" : " styles") +
                    ", counted from 0; found " + std::to_string(*request.style),
                ExitCode::usage);
  }
  inference::AnySize model(trained, request.style ? *request.style + 1 : styles);
  std::vector<PaintedImage> done;
  data::DamagedFiles damaged(request.damaged);
  for (std::size_t i = 0; i < images.size(); ++i) {
    inference::ContentPicture read;
    const auto decode = [&](std::string* damage) {
      read = inference::read_content(images[i].file, request.size, damage);
    };
    if (!damaged.sound(images[i].file, decode)) continue;
    const Planes& content = read.colours;
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Planes> painted = model.run(widened(content));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (std::size_t style = request.style ? painted.size() - 1 : 0; style < painted.size(); ++style) {
      if (painted[style].height < content.height || painted[style].width < content.width ||
          painted[style].channels != 3) {
        throw Error("the model makes " + std::to_string(painted[style].width) + " by " +
                    std::to_string(painted[style].height) + " pixels of " + std::to_string(content.width) + " by " +
                    std::to_string(content.height) + "; expected an image of the same size in three colours");
      }
      Planes result = top_left(painted[style], content.height, content.width);
      if (request.original_colours) {
        result =
            inference::join_colours(inference::split_colours(result).luma, inference::split_colours(content).colours);
      }
      PaintedImage one;
      one.from = images[i].file;
      one.to = of_style(results[i], static_cast<int64_t>(style), request, styles);
      one.height = content.height;
      one.width = content.width;
      one.style = static_cast<int64_t>(style);
      one.seconds = seconds;
      one.notes = read.notes;
      inference::write_picture(one.to, inference::picture_like(read.like, result));
      done.push_back(std::move(one));
    }
  }
  damaged.report(request.on_damaged);
  return done;
}

}  // namespace gpunn
