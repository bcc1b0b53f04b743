#include "data/variation/varied_sample.hpp"

#include <cstring>
#include <optional>

namespace gpunn::data {

namespace {

Image image_of_planes(std::span<const std::byte> planes, const Shape& shape) {
  Image image{shape[2], shape[3], shape[1], {}};
  image.values.resize(planes.size());
  const auto pixels = static_cast<std::size_t>(shape[2] * shape[3]), channels = static_cast<std::size_t>(shape[1]);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < pixels; ++i) {
      image.values[i * channels + c] = std::to_integer<uint8_t>(planes[c * pixels + i]);
    }
  }
  return image;
}

}  // namespace

void read_sample(const Split& split, int64_t row, const SampleVariation* variation, uint64_t epoch,
                 std::span<std::byte> sample) {
  std::optional<SampleDraw> draw;
  if (variation != nullptr) draw.emplace(*variation, epoch, row);
  if (split.source != nullptr) {
    return split.source->read(split.source_rows[static_cast<std::size_t>(row)], draw ? &*draw : nullptr, sample);
  }
  const std::span<const std::byte> stored =
      split.sample_bytes().subspan(static_cast<std::size_t>(row) * sample.size(), sample.size());
  if (!draw) {
    std::memcpy(sample.data(), stored.data(), sample.size());
    return;
  }
  Image image = image_of_planes(stored, split.samples.shape);
  if (draw->crops()) {
    const ImageRegion part = draw->crop(image.height, image.width);
    const auto top = static_cast<double>(part.top), left = static_cast<double>(part.left);
    image = resize_region(image,
                          {top, left, top + static_cast<double>(part.height), left + static_cast<double>(part.width)},
                          image.height, image.width);
  }
  draw->change(image);
  write_planes(image, sample.data());
}

}  // namespace gpunn::data
