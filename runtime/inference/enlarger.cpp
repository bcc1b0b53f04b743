#include "inference/enlarger.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "inference/tiles.hpp"
#include "tasks/super_resolution/bicubic.hpp"
#include "tasks/task.hpp"

namespace gpunn::inference {

using tasks::Planes;

namespace {

constexpr int64_t kMostSideOfTile = 16384;

// A part of an image; what is smaller than kLeastSide is filled up with the last row and column.
Planes cut(const Planes& image, const Stretch& down, const Stretch& across) {
  Planes tile{image.channels, std::max(down.size, kLeastSide), std::max(across.size, kLeastSide)};
  for (int64_t c = 0; c < image.channels; ++c) {
    for (int64_t y = 0; y < tile.height; ++y) {
      const auto row = image.channel(c).subspan(
          static_cast<std::size_t>((down.first + std::min(y, down.size - 1)) * image.width + across.first),
          static_cast<std::size_t>(across.size));
      tile.values.insert(tile.values.end(), row.begin(), row.end());
      tile.values.resize(tile.values.size() + static_cast<std::size_t>(tile.width - across.size), row.back());
    }
  }
  return tile;
}

void put(const Planes& tile, const Stretch& down, const Stretch& across, int64_t ratio, Planes& result) {
  for (int64_t c = 0; c < tile.channels; ++c) {
    for (int64_t y = down.keep_first * ratio; y < down.keep_end * ratio; ++y) {
      const auto from = tile.channel(c).subspan(
          static_cast<std::size_t>((y - down.first * ratio) * tile.width + (across.keep_first - across.first) * ratio),
          static_cast<std::size_t>((across.keep_end - across.keep_first) * ratio));
      std::ranges::copy(from, result.values.begin() + static_cast<std::ptrdiff_t>(c) * result.height * result.width +
                                  y * result.width + across.keep_first * ratio);
    }
  }
}

}  // namespace

Enlarger::Enlarger(const TrainedModel& trained, int64_t tile, int64_t overlap)
    : model_(trained), tile_(tile), overlap_(overlap) {
  if (tile < 0 || tile > kMostSideOfTile || overlap < 0 || (tile > 0 && tile <= 2 * overlap)) {
    throw Error("a tile has to be more than twice the overlap, and at most " + std::to_string(kMostSideOfTile) +
                    " (0: no tiles); found tiles of " + std::to_string(tile) + " that overlap by " +
                    std::to_string(overlap),
                ExitCode::usage);
  }
  if (model_.info().task != "super_resolution") {
    throw Error(trained.path.string() + ": the model is of the task " + model_.info().task +
                    "; images are enlarged by one of super_resolution. Use `gpunn " +
                    tasks::find(model_.info().task).command(trained.path.string()) + "`",
                ExitCode::usage);
  }
  if (!model_.info().photographs) {
    throw Error(trained.path.string() +
                    ": nothing in the file says how many times the model enlarges and which colours it sees. A file of "
                    "`gpunn export` says so, as a run does",
                ExitCode::usage);
  }
  settings_ = *model_.info().photographs;
}

Planes Enlarger::bicubic(const Planes& image) const {
  return tasks::resize_bicubic(image, static_cast<double>(settings_.scale));
}

Planes Enlarger::enlarge(const Planes& image, EnlargingWork& work) {
  const bool enlarged = settings_.input == ModelInput::enlarged;
  const Planes larger = enlarged ? bicubic(image) : Planes();
  const Planes& input = enlarged ? larger : image;
  const int64_t ratio = enlarged ? 1 : settings_.scale;
  Planes result{image.channels, image.height * settings_.scale, image.width * settings_.scale};
  result.values.resize(static_cast<std::size_t>(result.channels) * result.plane());
  for (const Stretch& down : stretches_of(input.height, tile_, overlap_)) {
    for (const Stretch& across : stretches_of(input.width, tile_, overlap_)) {
      const Planes tile = cut(input, down, across);
      const auto start = std::chrono::steady_clock::now();
      const Planes output = model_.run(tile).front();
      work.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (output.height != tile.height * ratio || output.width != tile.width * ratio ||
          output.channels != image.channels) {
        throw Error("the model makes " + std::to_string(output.width) + " by " + std::to_string(output.height) +
                    " pixels of " + std::to_string(tile.width) + " by " + std::to_string(tile.height) + "; expected " +
                    std::to_string(ratio) + " times as many a side, as data.scale says");
      }
      put(output, down, across, ratio, result);
      ++work.tiles;
    }
  }
  return result;
}

}  // namespace gpunn::inference
