#include "data/segmentation/label_map.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <string>

#include "data/images/image.hpp"
#include "data/images/picture.hpp"
#include "data/pack/files.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

std::string pixel_text(std::size_t pixel, const Picture& picture) {
  const auto width = static_cast<std::size_t>(picture.width);
  return "the pixel in row " + std::to_string(pixel / width) + " and column " + std::to_string(pixel % width);
}

// The colour of a pixel, whichever way the file stores it. Nothing: a place that the palette lacks.
std::optional<Rgb> colour_of(const Picture& picture, std::size_t pixel) {
  const int shift = picture.bits - 8;
  const auto byte = [&](std::size_t i) { return static_cast<uint8_t>(picture.values[i] >> shift); };
  if (picture.channels == 3) return Rgb{byte(3 * pixel), byte(3 * pixel + 1), byte(3 * pixel + 2)};
  if (picture.palette.empty()) return Rgb{byte(pixel), byte(pixel), byte(pixel)};
  const std::size_t place = picture.values[pixel];
  return place < picture.palette.size() ? std::optional(picture.palette[place]) : std::nullopt;
}

void read_ids(const Picture& picture, const fs::path& file, LabelMap& map) {
  if (picture.channels == 3) {
    throw Error(file.string() +
                ": a label map in colours; expected ids as grey values or places in a palette. Name the table of its "
                "colours with data.colour_table");
  }
  for (std::size_t i = 0; i < map.ids.size(); ++i) {
    if (picture.values[i] > kIgnoredPixel) {
      throw Error(file.string() + ": " + pixel_text(i, picture) + " has the id " + std::to_string(picture.values[i]) +
                  "; a label map has ids up to 255. Renumber the classes, or check that this is a label map and not a "
                  "map of instances");
    }
    map.ids[i] = static_cast<uint8_t>(picture.values[i]);
  }
}

void read_colours(const Picture& picture, const fs::path& file, const ColourTable& colours, LabelMap& map) {
  for (std::size_t i = 0; i < map.ids.size(); ++i) {
    const std::optional<Rgb> colour = colour_of(picture, i);
    const std::optional<uint8_t> id = colour ? colours.class_of(*colour) : std::nullopt;
    if (!id) {
      throw Error(file.string() + ": " + pixel_text(i, picture) + " has " +
                  (colour ? "the colour " + colours.unknown(*colour) : "a place that the palette lacks"));
    }
    map.ids[i] = *id;
  }
}

// For each kept pixel of a side of `source` pixels that is scaled to `scaled`, the source pixel nearest to its centre.
std::vector<int64_t> nearest(int64_t source, int64_t scaled, int64_t first, int64_t count) {
  std::vector<int64_t> places(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    places[static_cast<std::size_t>(i)] = (2 * (first + i) + 1) * source / (2 * scaled);
  return places;
}

}  // namespace

LabelMap read_label_map(std::span<const uint8_t> bytes, const fs::path& file, const ColourTable* colours) {
  constexpr std::array<uint8_t, 4> kPng = {0x89, 'P', 'N', 'G'};
  if (!std::equal(kPng.begin(), kPng.end(), bytes.begin(), bytes.begin() + std::min(bytes.size(), kPng.size()))) {
    throw Error(file.string() + ": expected a label map as a PNG, which stores each id exactly; found another kind");
  }
  const Picture picture = decode_png_as_stored(bytes, file);
  LabelMap map{.height = picture.height, .width = picture.width, .ids = {}};
  map.ids.resize(static_cast<std::size_t>(map.height * map.width));
  if (colours == nullptr) {
    read_ids(picture, file, map);
  } else {
    read_colours(picture, file, *colours, map);
  }
  return map;
}

LabelMap read_label_map(const fs::path& file, const ColourTable* colours) {
  return read_label_map(files::read(file, kMostImageFileBytes).bytes(), file, colours);
}

LabelMap fitted_map(const LabelMap& map, int64_t height, int64_t width, const ImageFit& fit) {
  ImageSides scaled{height, width};
  int64_t top = 0, left = 0;
  if (fit.inside) {
    scaled = inside_sides({map.height, map.width}, height, width);
  } else if (fit.crop) {
    scaled = covering_sides({map.height, map.width}, height, width, fit.shorter_side);
    top = middle_start(scaled.height, height);
    left = middle_start(scaled.width, width);
  }
  const std::vector<int64_t> rows = nearest(map.height, scaled.height, top, std::min(height, scaled.height));
  const std::vector<int64_t> columns = nearest(map.width, scaled.width, left, std::min(width, scaled.width));
  LabelMap fitted{.height = height, .width = width, .ids = {}};
  fitted.ids.assign(static_cast<std::size_t>(height * width), kIgnoredPixel);
  for (std::size_t y = 0; y < rows.size(); ++y) {
    const uint8_t* const from = map.ids.data() + rows[y] * map.width;
    uint8_t* const to = fitted.ids.data() + static_cast<int64_t>(y) * width;
    std::ranges::transform(columns, to, [&](int64_t column) { return from[column]; });
  }
  return fitted;
}

}  // namespace gpunn::data
