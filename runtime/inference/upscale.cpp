#include <gpunn/error.hpp>
#include <gpunn/upscale.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/damaged_files.hpp"
#include "data/images/image.hpp"
#include "inference/enlarger.hpp"
#include "inference/picture_parts.hpp"
#include "inference/pictures.hpp"
#include "inference/result_files.hpp"

namespace gpunn {

namespace fs = std::filesystem;
using tasks::Planes;

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

void require_size(const data::Image& image, const fs::path& file, int64_t scale) {
  const int64_t height = image.height * scale, width = image.width * scale;
  if (height <= data::kMostSide && width <= data::kMostSide && height * width <= data::kMostPixels) return;
  throw Error(file.string() + ": enlarged by " + std::to_string(scale) + " it would be " + std::to_string(width) +
                  " by " + std::to_string(height) + " pixels; at most " + std::to_string(data::kMostSide) +
                  " a side and " + std::to_string(data::kMostPixels) + " in all can be written",
              ExitCode::usage);
}

data::Image side_by_side(const data::Image& left, const data::Image& right) {
  data::Image both = data::make_image(left.height, left.width + kGap + right.width, left.channels, "a comparison");
  std::ranges::fill(both.values, uint8_t{255});
  const auto row_bytes = [](const data::Image& image) {
    return static_cast<std::size_t>(image.width * image.channels);
  };
  for (std::size_t y = 0; y < static_cast<std::size_t>(left.height); ++y) {
    uint8_t* const row = both.values.data() + y * row_bytes(both);
    std::memcpy(row, left.values.data() + y * row_bytes(left), row_bytes(left));
    std::memcpy(row + row_bytes(both) - row_bytes(right), right.values.data() + y * row_bytes(right), row_bytes(right));
  }
  return both;
}

// Nothing: the image is damaged and left out.
std::optional<UpscaledImage> upscale(const Job& job, inference::Enlarger& enlarger, data::DamagedFiles& damaged) {
  std::vector<uint8_t> opacity;
  data::Image image;
  const auto read = [&](std::string* damage) { image = data::read_image_file(job.from, opacity, damage); };
  if (!damaged.sound(job.from, read)) return std::nullopt;
  require_size(image, job.from, enlarger.settings().scale);
  const inference::PictureParts parts = inference::parts_of(image, opacity, enlarger.settings());
  inference::EnlargingWork work;
  const Planes result = inference::joined(enlarger.enlarge(parts.seen, work), parts, enlarger);
  inference::write_picture(
      job.to, inference::picture_of(result, parts.opacity.values.empty() ? Planes() : enlarger.bicubic(parts.opacity)));
  if (!job.compare.empty()) {
    const Planes other = inference::joined(enlarger.bicubic(parts.seen), parts, enlarger);
    inference::write_picture(job.compare, side_by_side(inference::picture_of(other), inference::picture_of(result)));
  }
  return UpscaledImage{.from = job.from,
                       .to = job.to,
                       .height = result.height,
                       .width = result.width,
                       .tiles = work.tiles,
                       .seconds = work.seconds};
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
