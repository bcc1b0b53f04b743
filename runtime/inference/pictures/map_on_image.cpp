// Label maps of predictions, on the images that the samples were made of.
#include <gpunn/segmentation.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "data/images/image.hpp"
#include "data/segmentation/draw_map.hpp"
#include "data/segmentation/run_lengths.hpp"
#include "inference/samples/image_sample.hpp"

namespace gpunn {

namespace {

// How one side of an image became a side of a sample: scaled, and cut from `first` on.
struct FittedSide {
  int64_t image = 0, scaled = 0, first = 0, sample = 0;

  // The pixel of the sample that shows a pixel of the image; -1: none does.
  int64_t place_of(int64_t pixel) const {
    const int64_t place = (2 * pixel + 1) * scaled / (2 * image) - first;
    return place >= 0 && place < std::min(sample, scaled) ? place : -1;
  }
};

}  // namespace

LabelMap inference::map_on_image(LabelMap map, int64_t height, int64_t width, const Field& input) {
  FittedSide rows{height, map.height, 0, map.height}, columns{width, map.width, 0, map.width};
  if (input.fit.inside || input.fit.crop) {
    const data::ImageSides image{height, width};
    const data::ImageSides scaled = input.fit.inside
                                        ? data::inside_sides(image, map.height, map.width)
                                        : data::covering_sides(image, map.height, map.width, input.fit.shorter_side);
    rows.scaled = scaled.height;
    columns.scaled = scaled.width;
    if (input.fit.crop && !input.fit.inside) {
      rows.first = data::middle_start(scaled.height, map.height);
      columns.first = data::middle_start(scaled.width, map.width);
    }
  }
  LabelMap whole{.height = height, .width = width, .classes = {}};
  whole.classes.assign(static_cast<std::size_t>(height * width), kNoClass);
  std::vector<int64_t> from;
  for (int64_t x = 0; x < width; ++x) from.push_back(columns.place_of(x));
  for (int64_t y = 0; y < height; ++y) {
    const int64_t row = rows.place_of(y);
    if (row < 0) continue;
    for (int64_t x = 0; x < width; ++x) {
      const int64_t column = from[static_cast<std::size_t>(x)];
      if (column < 0) continue;
      whole.classes[static_cast<std::size_t>(y * width + x)] =
          map.classes[static_cast<std::size_t>(row * map.width + column)];
    }
  }
  return whole;
}

void write_with_map(const std::filesystem::path& image, const LabelMap& map, const std::filesystem::path& to) {
  std::string damage;  // a damaged image has a map only if it was to be repaired
  data::Image picture = data::read_image_file(image, &damage);
  data::draw_map(picture, {map.height, map.width, map.classes});
  require_writable(to, {image});
  write_atomically(to, data::encode_png(picture));
}

std::string run_lengths_of(const LabelMap& map, uint8_t index) {
  return data::text_of(data::runs_of(map.classes, map.height, map.width, index));
}

}  // namespace gpunn
