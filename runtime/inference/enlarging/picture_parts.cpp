#include "inference/enlarging/picture_parts.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include "inference/pictures/pictures.hpp"

namespace gpunn::inference {

using data::Planes;

namespace {

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

}  // namespace

PictureParts parts_of(const Planes& image, Planes opacity, const PhotographInfo& settings) {
  PictureParts parts;
  parts.grey = image.channels == 1;
  parts.opacity = std::move(opacity);
  if (settings.colours == ColourPlanes::luma && image.channels == 3) {
    LumaColours split = split_colours(image);
    parts.seen = std::move(split.luma);
    parts.colours = std::move(split.colours);
  } else if (settings.colours == ColourPlanes::rgb && image.channels == 1) {
    parts.seen = {3, image.height, image.width};
    for (int c = 0; c < 3; ++c) {
      parts.seen.values.insert(parts.seen.values.end(), image.values.begin(), image.values.end());
    }
  } else {
    parts.seen = image;
  }
  return parts;
}

Planes joined(const Planes& seen, const PictureParts& parts, const Enlarger& enlarger) {
  if (!parts.colours.values.empty()) return join_colours(seen, enlarger.bicubic(parts.colours));
  return parts.grey && seen.channels == 3 ? mean_of_channels(seen) : seen;
}

}  // namespace gpunn::inference
