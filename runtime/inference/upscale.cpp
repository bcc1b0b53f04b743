#include <gpunn/error.hpp>
#include <gpunn/upscale.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "data/images/image.hpp"
#include "inference/any_size.hpp"
#include "inference/pictures.hpp"
#include "inference/result_files.hpp"
#include "inference/tiles.hpp"
#include "tasks/super_resolution/bicubic.hpp"

namespace gpunn {

namespace fs = std::filesystem;
using inference::LumaColours;
using inference::Stretch;
using tasks::Planes;

namespace {

constexpr int64_t kMostSideOfTile = 16384;
constexpr int64_t kGap = 8;  // between the halves of a comparison

// An image as the model enlarges it: the planes it sees, and those that bicubic has to do for.
struct Parts {
  Planes seen;
  Planes colours;  // the two colour differences of BT.601, of a model that sees luma alone; else none
  Planes opacity;  // a plane; none where all is opaque
};

Planes mean_of_channels(const Planes& image) {
  Planes grey{1, image.height, image.width};
  grey.values.resize(grey.plane());
  for (int64_t c = 0; c < image.channels; ++c) {
    const std::span<const float> plane = image.channel(c);
    for (std::size_t i = 0; i < plane.size(); ++i) {
      grey.values[i] += plane[i] / static_cast<float>(image.channels);
    }
  }
  return grey;
}

void require_request(const UpscaleRequest& request) {
  if (request.inputs.empty()) throw Error("nothing to enlarge: give images or folders of them", ExitCode::usage);
  if (request.tile < 0 || request.tile > kMostSideOfTile || request.overlap < 0 ||
      (request.tile > 0 && request.tile <= 2 * request.overlap)) {
    throw Error("a tile has to be more than twice the overlap, and at most " + std::to_string(kMostSideOfTile) +
                    " (0: no tiles); found tiles of " + std::to_string(request.tile) + " that overlap by " +
                    std::to_string(request.overlap),
                ExitCode::usage);
  }
}

// What is read, and what is written of it.
struct Job {
  fs::path from, to, compare;
};

std::vector<Job> jobs_of(const UpscaleRequest& request) {
  const std::vector<inference::ImageFile> images = inference::images_in(request.inputs);
  std::vector<fs::path> results = inference::result_files(request.inputs, images, request.to);
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const fs::path& to = results[i];
    jobs.push_back({images[i].file, to, request.compare ? fs::path(to).replace_extension(".compare.png") : fs::path()});
  }
  for (const Job& job : jobs) {
    if (request.compare) results.push_back(job.compare);
  }
  inference::require_own_places(images, results, "--to");
  return jobs;
}

class Upscaler {
 public:
  Upscaler(const TrainedModel& trained, const UpscaleRequest& request) : request_(request), model_(trained) {
    if (model_.info().task != "super_resolution") {
      throw Error(trained.path.string() + ": the model is of the task " + model_.info().task +
                      "; images are enlarged by one of super_resolution",
                  ExitCode::usage);
    }
    settings_ = std::get<PhotographSet>(model_.experiment().data.kind);
  }

  UpscaledImage upscale(const Job& job) {
    std::vector<uint8_t> opacity;
    const data::Image image = data::read_image_file(job.from, opacity);
    require_size(image, job.from);
    UpscaledImage done{.from = job.from, .to = job.to};
    const bool grey = image.channels == 1;
    const Parts parts = parts_of(image, opacity);
    const Planes result = colours_of(enlarge(parts.seen, done), parts, grey);
    inference::write_picture(
        job.to, inference::picture_of(result, parts.opacity.values.empty() ? Planes() : bicubic(parts.opacity)));
    if (!job.compare.empty()) {
      const Planes other = colours_of(bicubic(parts.seen), parts, grey);
      inference::write_picture(job.compare, side_by_side(inference::picture_of(other), inference::picture_of(result)));
    }
    return done;
  }

 private:
  double factor() const { return static_cast<double>(settings_.scale); }
  Planes bicubic(const Planes& image) const { return tasks::resize_bicubic(image, factor()); }

  void require_size(const data::Image& image, const fs::path& file) const {
    const int64_t height = image.height * settings_.scale, width = image.width * settings_.scale;
    if (height <= data::kMostSide && width <= data::kMostSide && height * width <= data::kMostPixels) return;
    throw Error(file.string() + ": enlarged by " + std::to_string(settings_.scale) + " it would be " +
                    std::to_string(width) + " by " + std::to_string(height) + " pixels; at most " +
                    std::to_string(data::kMostSide) + " a side and " + std::to_string(data::kMostPixels) +
                    " in all can be written",
                ExitCode::usage);
  }

  Parts parts_of(const data::Image& image, const std::vector<uint8_t>& opacity) const {
    Parts parts;
    const Planes planes = inference::planes_of_bytes(image.values, image.channels, image.height, image.width);
    if (settings_.colours == ColourPlanes::luma && image.channels == 3) {
      LumaColours split = inference::split_colours(planes);
      parts.seen = std::move(split.luma);
      parts.colours = std::move(split.colours);
    } else if (settings_.colours == ColourPlanes::rgb && image.channels == 1) {
      parts.seen = {3, image.height, image.width};
      for (int c = 0; c < 3; ++c) {
        parts.seen.values.insert(parts.seen.values.end(), planes.values.begin(), planes.values.end());
      }
    } else {
      parts.seen = planes;
    }
    if (!opacity.empty()) parts.opacity = inference::planes_of_bytes(opacity, 1, image.height, image.width);
    return parts;
  }

  // What the model makes of the image, in parts where it is large.
  Planes enlarge(const Planes& image, UpscaledImage& done) {
    const bool enlarged = settings_.input == ModelInput::enlarged;
    const Planes input = enlarged ? bicubic(image) : image;
    const int64_t ratio = enlarged ? 1 : settings_.scale;
    Planes result{image.channels, image.height * settings_.scale, image.width * settings_.scale};
    result.values.resize(static_cast<std::size_t>(result.channels) * result.plane());
    done.height = result.height;
    done.width = result.width;
    const std::vector<Stretch> rows = inference::stretches_of(input.height, request_.tile, request_.overlap);
    const std::vector<Stretch> columns = inference::stretches_of(input.width, request_.tile, request_.overlap);
    for (const Stretch& down : rows) {
      for (const Stretch& across : columns) {
        const Planes tile = cut(input, down, across);
        const auto start = std::chrono::steady_clock::now();
        const Planes output = model_.run(tile).front();
        done.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (output.height != tile.height * ratio || output.width != tile.width * ratio ||
            output.channels != image.channels) {
          throw Error("the model makes " + std::to_string(output.width) + " by " + std::to_string(output.height) +
                      " pixels of " + std::to_string(tile.width) + " by " + std::to_string(tile.height) +
                      "; expected " + std::to_string(ratio) + " times as many a side, as data.scale says");
        }
        put(output, down, across, ratio, result);
        ++done.tiles;
      }
    }
    return result;
  }

  static Planes cut(const Planes& image, const Stretch& down, const Stretch& across) {
    Planes tile{image.channels, down.size, across.size};
    for (int64_t c = 0; c < image.channels; ++c) {
      for (int64_t y = down.first; y < down.first + down.size; ++y) {
        const auto row = image.channel(c).subspan(static_cast<std::size_t>(y * image.width + across.first),
                                                  static_cast<std::size_t>(across.size));
        tile.values.insert(tile.values.end(), row.begin(), row.end());
      }
    }
    return tile;
  }

  static void put(const Planes& tile, const Stretch& down, const Stretch& across, int64_t ratio, Planes& result) {
    for (int64_t c = 0; c < tile.channels; ++c) {
      for (int64_t y = down.keep_first * ratio; y < down.keep_end * ratio; ++y) {
        const auto from =
            tile.channel(c).subspan(static_cast<std::size_t>((y - down.first * ratio) * tile.width +
                                                             (across.keep_first - across.first) * ratio),
                                    static_cast<std::size_t>((across.keep_end - across.keep_first) * ratio));
        std::ranges::copy(from, result.values.begin() + static_cast<std::ptrdiff_t>(c) * result.height * result.width +
                                    y * result.width + across.keep_first * ratio);
      }
    }
  }

  Planes colours_of(const Planes& seen, const Parts& parts, bool grey) const {
    if (!parts.colours.values.empty()) return inference::join_colours(seen, bicubic(parts.colours));
    return grey && seen.channels == 3 ? mean_of_channels(seen) : seen;
  }

  static data::Image side_by_side(const data::Image& left, const data::Image& right) {
    data::Image both = data::make_image(left.height, left.width + kGap + right.width, left.channels, "a comparison");
    std::ranges::fill(both.values, uint8_t{255});
    const auto row_bytes = [](const data::Image& image) {
      return static_cast<std::size_t>(image.width * image.channels);
    };
    for (std::size_t y = 0; y < static_cast<std::size_t>(left.height); ++y) {
      uint8_t* const row = both.values.data() + y * row_bytes(both);
      std::memcpy(row, left.values.data() + y * row_bytes(left), row_bytes(left));
      std::memcpy(row + row_bytes(both) - row_bytes(right), right.values.data() + y * row_bytes(right),
                  row_bytes(right));
    }
    return both;
  }

  const UpscaleRequest& request_;
  inference::AnySize model_;
  PhotographSet settings_;
};

}  // namespace

std::vector<UpscaledImage> upscale(const TrainedModel& model, const UpscaleRequest& request) {
  require_request(request);
  const std::vector<Job> jobs = jobs_of(request);
  Upscaler upscaler(model, request);
  std::vector<UpscaledImage> done;
  for (const Job& job : jobs) done.push_back(upscaler.upscale(job));
  return done;
}

}  // namespace gpunn
