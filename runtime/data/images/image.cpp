#include "data/images/image.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <utility>

namespace gpunn::data {

Image make_image(int64_t height, int64_t width, int64_t channels, const std::filesystem::path& file,
                 int64_t most_pixels) {
  const int64_t most = std::min(most_pixels, kMostPixels);
  if (height <= 0 || width <= 0 || height > kMostSide || width > kMostSide || height * width > most) {
    throw Error(file.string() + ": the image is " + std::to_string(width) + " by " + std::to_string(height) +
                " pixels; expected 1 to " + std::to_string(kMostSide) + " a side and at most " + std::to_string(most) +
                " in all");
  }
  Image image;
  image.height = height;
  image.width = width;
  image.channels = channels;
  image.values.resize(static_cast<std::size_t>(height * width * channels));
  return image;
}

Image convert_channels(Image image, int64_t channels) {
  if (image.channels == channels) return image;
  Image result{image.height, image.width, channels, {}, image.from_16_bits, image.first_frame};
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  result.values.resize(pixels * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < pixels; ++i) {
    if (channels == 1) {
      // 0.299, 0.587 and 0.114 in units of 2^-16: rounded as Pillow does.
      const uint8_t* rgb = image.values.data() + 3 * i;
      result.values[i] = static_cast<uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 32768U) >> 16);
    } else {
      std::fill_n(result.values.data() + 3 * i, 3, image.values[i]);
    }
  }
  return result;
}

void write_planes(const Image& image, std::byte* target) {
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const uint8_t* source = image.values.data() + c;
    for (std::size_t i = 0; i < pixels; ++i) target[c * pixels + i] = std::byte{source[i * channels]};
  }
}

bool has_light_background(const Image& image) {
  uint64_t sum = 0, count = 0;
  const auto add = [&](int64_t y, int64_t x) {
    for (int64_t c = 0; c < image.channels; ++c) {
      sum += image.values[static_cast<std::size_t>((y * image.width + x) * image.channels + c)];
      ++count;
    }
  };
  for (int64_t x = 0; x < image.width; ++x) {
    add(0, x);
    add(image.height - 1, x);
  }
  for (int64_t y = 0; y < image.height; ++y) {
    add(y, 0);
    add(y, image.width - 1);
  }
  return sum > 127 * count;
}

}  // namespace gpunn::data
