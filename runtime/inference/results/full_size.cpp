// Label maps of whole pictures by tiles: the overlap-tile strategy of U-Net (Ronneberger, Fischer, Brox, 2015).
#include "inference/results/full_size.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/images/fitted_sample.hpp"
#include "inference/samples/image_sample.hpp"
#include "inference/tiles/tiles.hpp"
#include "tasks/task.hpp"

namespace gpunn {

namespace inference {

namespace {

constexpr int64_t kShareOfTile = 8;  // of an overlap

// The size that pictures were scaled to for samples, before these were cut out. Those that were only stretched stay.
data::ImageSides scaled_sides(const data::ImageSides& picture, const Field& input) {
  const int64_t height = input.type.shape[1], width = input.type.shape[2];
  if (input.fit.inside) return data::inside_sides(picture, height, width);
  if (input.fit.crop) return data::covering_sides(picture, height, width, input.fit.shorter_side);
  return picture;
}

// The pixel that a place behind the end of a line shows: the line is mirrored at its last pixel, then at its first one.
int64_t mirrored_place(int64_t place, int64_t size) {
  if (size == 1) return 0;
  const int64_t turn = 2 * (size - 1), at = place % turn;
  return std::min(at, turn - at);
}

std::vector<int64_t> places_of(const Stretch& stretch, int64_t tile, int64_t size) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < tile; ++i) places.push_back(mirrored_place(stretch.first + i, size));
  return places;
}

std::vector<Stretch> stretches_of_side(int64_t size, int64_t tile, const FullSize& options) {
  const int64_t overlap = options.overlap.value_or(tile / kShareOfTile);
  if (overlap < 0 || 2 * overlap >= tile) {
    throw Error("the overlap: expected less than half of a side of the model's images, " + std::to_string(tile) +
                    " pixels, found " + std::to_string(overlap),
                ExitCode::usage);
  }
  return stretches_of(size, tile, overlap);
}

// A picture channel by channel, and the map that its tiles are put into.
class TiledPicture {
 public:
  TiledPicture(const data::Image& picture, const Field& input)
      : tile_(input.type.shape), sides_(scaled_sides({picture.height, picture.width}, input)) {
    planes_ = data::fitted_sample(picture, tile_[0], sides_.height, sides_.width, input.light_on_dark, {});
    map_ = {.height = sides_.height, .width = sides_.width, .classes = {}};
    map_.classes.resize(static_cast<std::size_t>(sides_.height * sides_.width));
  }

  const data::ImageSides& sides() const { return sides_; }

  // Appends a tile to `samples`. Places behind the picture are mirrored.
  void cut(const Stretch& down, const Stretch& across, std::vector<uint8_t>& samples) const {
    const std::vector<int64_t> rows = places_of(down, tile_[1], sides_.height);
    const std::vector<int64_t> columns = places_of(across, tile_[2], sides_.width);
    for (int64_t c = 0; c < tile_[0]; ++c) {
      for (const int64_t row : rows) {
        const uint8_t* const from = planes_.data() + (c * sides_.height + row) * sides_.width;
        for (const int64_t column : columns) samples.push_back(from[column]);
      }
    }
  }

  // The kept part of a tile's classes.
  void put(const Stretch& down, const Stretch& across, std::span<const int32_t> classes) {
    for (int64_t y = down.keep_first; y < down.keep_end; ++y) {
      const auto row =
          classes.subspan(static_cast<std::size_t>((y - down.first) * tile_[2] + across.keep_first - across.first),
                          static_cast<std::size_t>(across.keep_end - across.keep_first));
      std::ranges::transform(row, map_.classes.begin() + y * sides_.width + across.keep_first,
                             [](int32_t one) { return static_cast<uint8_t>(one); });
    }
  }

  LabelMap take() { return std::move(map_); }

 private:
  Shape tile_;  // channels, rows and columns
  data::ImageSides sides_;
  std::vector<uint8_t> planes_;
  LabelMap map_;
};

}  // namespace

void require_pixel_classes(const Model& model) {
  const TensorType& input = model.inputs().front().row;
  const bool takes_images = model.inputs().size() == 1 && input.dtype == DType::u8 && input.shape.size() == 3;
  if (takes_images && model.outputs().back().row == TensorType{DType::i32, {input.shape[1], input.shape[2]}}) return;
  throw Error(
      "maps in the size of pictures are of models that give each pixel a class, of images of bytes; this one is "
      "of the task " +
          model.info().task + " and gives " + to_string(model.outputs().back().row) + " of " + to_string(input),
      ExitCode::usage);
}

LabelMap map_of_picture(const Model& model, const data::Image& picture, const FullSize& options) {
  require_pixel_classes(model);
  const ModelTensor &input = model.inputs().front(), &output = model.outputs().back();
  TiledPicture tiled(picture, model.info().fields.input());
  std::vector<std::pair<Stretch, Stretch>> tiles;
  for (const Stretch& down : stretches_of_side(tiled.sides().height, input.row.shape[1], options)) {
    for (const Stretch& across : stretches_of_side(tiled.sides().width, input.row.shape[2], options)) {
      tiles.emplace_back(down, across);
    }
  }
  const auto most = static_cast<std::size_t>(model.max_batch()), size = static_cast<std::size_t>(output.row.elements());
  std::vector<uint8_t> samples;
  std::vector<int32_t> classes;
  for (std::size_t first = 0; first < tiles.size(); first += most) {
    const auto part = std::span(tiles).subspan(first, std::min(most, tiles.size() - first));
    samples.clear();
    for (const auto& [down, across] : part) tiled.cut(down, across, samples);
    classes.resize(part.size() * size);
    const Shape from = batch_shape(input.row.shape, std::ssize(part)),
                to = batch_shape(output.row.shape, std::ssize(part));
    model.run({.name = input.name, .dtype = DType::u8, .shape = from, .data = samples.data()},
              {.name = output.name, .dtype = DType::i32, .shape = to, .data = classes.data()});
    for (std::size_t i = 0; i < part.size(); ++i) {
      tiled.put(part[i].first, part[i].second, std::span(classes).subspan(i * size, size));
    }
  }
  return map_on_image(tiled.take(), picture.height, picture.width, {.name = input.name});
}

}  // namespace inference

LabelMap segment_image(const Model& model, const std::filesystem::path& image, const FullSize& options) {
  return inference::map_of_picture(model, data::read_image_file(image), options);
}

}  // namespace gpunn
