#include <gpunn/error.hpp>
#include <gpunn/upscale.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/folders/damaged_files.hpp"
#include "data/images/image.hpp"
#include "data/images/picture.hpp"
#include "inference/enlarging/enlarger.hpp"
#include "inference/enlarging/picture_parts.hpp"
#include "inference/pictures/pictures.hpp"
#include "inference/results/result_files.hpp"

namespace gpunn {

namespace fs = std::filesystem;
using data::Planes;

namespace {

constexpr int64_t kGap = 8;  // between the halves of a comparison

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

void require_size(const data::Picture& image, const fs::path& file, int64_t scale) {
  const int64_t height = image.height * scale, width = image.width * scale;
  if (height <= data::kMostSide && width <= data::kMostSide && height * width <= data::kMostPixels) return;
  throw Error(file.string() + ": enlarged by " + std::to_string(scale) + " it would be " + std::to_string(width) +
                  " by " + std::to_string(height) + " pixels; at most " + std::to_string(data::kMostSide) +
                  " a side and " + std::to_string(data::kMostPixels) + " in all can be written",
              ExitCode::usage);
}

Planes side_by_side(const Planes& left, const Planes& right) {
  Planes both{left.channels, left.height, left.width + kGap + right.width};
  both.values.assign(static_cast<std::size_t>(both.channels) * both.plane(), 1.0F);
  for (int64_t c = 0; c < both.channels; ++c) {
    for (int64_t y = 0; y < both.height; ++y) {
      const auto row = both.values.begin() + (c * both.height + y) * both.width;
      const auto part = [&](const Planes& of) {
        return of.channel(c).subspan(static_cast<std::size_t>(y * of.width), static_cast<std::size_t>(of.width));
      };
      std::ranges::copy(part(left), row);
      std::ranges::copy(part(right), row + left.width + kGap);
    }
  }
  return both;
}

// Nothing: the image is damaged and left out.
std::optional<UpscaledImage> upscale(const Job& job, inference::Enlarger& enlarger, data::DamagedFiles& damaged) {
  data::Picture image;
  const auto read = [&](std::string* damage) { image = data::read_picture(job.from, damage); };
  if (!damaged.sound(job.from, read)) return std::nullopt;
  require_size(image, job.from, enlarger.settings().scale);
  const inference::PictureParts parts =
      inference::parts_of(inference::planes_of(image), inference::opacity_of(image), enlarger.settings());
  inference::EnlargingWork work;
  const Planes result = inference::joined(enlarger.enlarge(parts.seen, work), parts, enlarger);
  const data::Picture picture =
      inference::picture_like(image, result, parts.opacity.values.empty() ? Planes() : enlarger.bicubic(parts.opacity));
  inference::write_picture(job.to, picture);
  if (!job.compare.empty()) {
    const Planes other = inference::joined(enlarger.bicubic(parts.seen), parts, enlarger);
    inference::write_picture(job.compare, inference::picture_like(image, side_by_side(other, result)));
  }
  UpscaledImage done{.from = job.from,
                     .to = job.to,
                     .height = result.height,
                     .width = result.width,
                     .tiles = work.tiles,
                     .seconds = work.seconds};
  if (!work.note.empty()) done.notes.push_back(work.note);
  std::ranges::move(image.notes(result.channels == 1), std::back_inserter(done.notes));
  return done;
}

}  // namespace

std::vector<UpscaledImage> upscale(const TrainedModel& model, const UpscaleRequest& request) {
  if (request.inputs.empty()) throw Error("nothing to enlarge: give images or folders of them", ExitCode::usage);
  const std::vector<Job> jobs = jobs_of(request);
  inference::Enlarger enlarger(model, request.tile, request.overlap);
  std::vector<UpscaledImage> done;
  data::DamagedFiles damaged(request.damaged);
  for (const Job& job : jobs) {
    if (std::optional<UpscaledImage> image = upscale(job, enlarger, damaged)) done.push_back(std::move(*image));
  }
  damaged.report(request.on_damaged);
  return done;
}

}  // namespace gpunn
