#include "inference/enlarging/enlarger.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "data/images/bicubic.hpp"
#include "inference/tiles/tiles.hpp"
#include "tasks/task.hpp"

namespace gpunn::inference {

using data::Planes;

namespace {

constexpr int64_t kMostSideOfTile = 16384;
constexpr int64_t kTile = 512;    // rows and columns of a part, where the user names none
constexpr int64_t kOverlap = 32;  // of a model that sees more than parts have

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

Enlarger::Enlarger(const TrainedModel& trained, std::optional<int64_t> tile, std::optional<int64_t> overlap)
    : trained_(trained), model_(trained), tile_(tile), overlap_(overlap) {
  const int64_t rows = tile.value_or(kTile), shared = overlap.value_or(0);
  if (rows < 0 || rows > kMostSideOfTile || shared < 0 || (tile && rows > 0 && rows <= 2 * shared)) {
    throw Error("a tile has to be more than twice the overlap, and at most " + std::to_string(kMostSideOfTile) +
                    " (0: no tiles); found tiles of " + std::to_string(rows) + " that overlap by " +
                    std::to_string(shared),
                ExitCode::usage);
  }
  if (model_.info().task != "super_resolution") {
    throw Error(trained.path.string() + ": the model is of the task " + model_.info().task +
                    "; images are enlarged by one of super_resolution. Use `gpunn " +
                    tasks::find(model_.info().task).command(shell_word(trained.path.string())) + "`",
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
  return data::resize_bicubic(image, static_cast<double>(settings_.scale));
}

// An image that is larger than a part goes in parts that overlap by what the layers see, unless they see all of it.
Parts Enlarger::parts_of(const Planes& input) {
  Parts parts{.tile = tile_.value_or(kTile), .overlap = overlap_.value_or(0)};
  if (parts.tile == 0 || std::max(input.height, input.width) <= parts.tile) return {};
  if (!sight_)
    sight_ = sight_of(trained_, input.channels, settings_.input == ModelInput::enlarged ? 1 : settings_.scale);
  const std::string size = std::to_string(input.width) + " by " + std::to_string(input.height) + " pixels";
  if (!sight_->reach) {
    if (!tile_) {
      parts.tile = 0;
      parts.note = "the model sees the whole image (" + sight_->cause + "), so its " + size +
                   " are computed at once, which takes more memory than parts";
      return parts;
    }
    parts.overlap = overlap_.value_or(std::min(kOverlap, (parts.tile - 1) / 2));
    parts.note = "the model sees the whole image (" + sight_->cause +
                 "), so the result in parts differs from that of the whole image; --tile 0 computes it at once";
    return parts;
  }
  const Reach& reach = *sight_->reach;
  parts.step = reach.step;
  parts.overlap = overlap_.value_or(reach.pixels);
  if (parts.overlap < reach.pixels) {
    parts.note = "the model sees " + std::to_string(reach.pixels) + " pixels on each side, and the parts overlap by " +
                 std::to_string(parts.overlap) + ": pixels at their borders differ from those of the whole image";
  }
  const int64_t least = 2 * parts.overlap + parts.step;
  if (!tile_) parts.tile = std::max(parts.tile, 2 * least);
  if (parts.tile >= least) return parts;
  throw Error("the model sees " + std::to_string(reach.pixels) + " pixels on each side" +
                  (parts.step > 1 ? " and has strides of " + std::to_string(parts.step) + " in all" : "") +
                  ": a tile has to be at least " + std::to_string(least) + ", found " + std::to_string(parts.tile),
              ExitCode::usage);
}

Planes Enlarger::run(const Planes& tile, const Parts& parts) {
  try {
    return model_.run(tile).front();
  } catch (const Error& error) {
    if (parts.tile > 0 || parts.note.empty()) throw;
    throw Error(std::string(error.what()) + ". Note that " + parts.note +
                    "; --tile computes parts, whose result differs from that of the whole image",
                error.code());
  }
}

Planes Enlarger::enlarge(const Planes& image, EnlargingWork& work) {
  const bool enlarged = settings_.input == ModelInput::enlarged;
  const Planes larger = enlarged ? bicubic(image) : Planes();
  const Planes& input = enlarged ? larger : image;
  const int64_t ratio = enlarged ? 1 : settings_.scale;
  Planes result{image.channels, image.height * settings_.scale, image.width * settings_.scale};
  result.values.resize(static_cast<std::size_t>(result.channels) * result.plane());
  const Parts parts = parts_of(input);
  work.note = parts.note;
  for (const Stretch& down : stretches_of(input.height, parts.tile, parts.overlap, parts.step)) {
    for (const Stretch& across : stretches_of(input.width, parts.tile, parts.overlap, parts.step)) {
      const Planes tile = cut(input, down, across);
      const auto start = std::chrono::steady_clock::now();
      const Planes output = run(tile, parts);
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
