#include <algorithm>

#include "data/images/image.hpp"
#include "data/segmentation/label_map.hpp"

namespace gpunn::data {

namespace {

// For each kept pixel of a side of `source` pixels that is scaled to `scaled`, the source pixel nearest to its centre.
std::vector<int64_t> nearest(int64_t source, int64_t scaled, int64_t first, int64_t count) {
  std::vector<int64_t> places(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    places[static_cast<std::size_t>(i)] = (2 * (first + i) + 1) * source / (2 * scaled);
  return places;
}

}  // namespace

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
