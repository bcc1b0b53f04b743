#include "data/images/image.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace gpunn::data {

void require_size(int64_t height, int64_t width, const std::filesystem::path& file, int64_t most_pixels) {
  const int64_t most = std::min(most_pixels, kMostPixels);
  if (height <= 0 || width <= 0 || height > kMostSide || width > kMostSide || height * width > most) {
    throw Error(file.string() + ": the image is " + std::to_string(width) + " by " + std::to_string(height) +
                " pixels; expected 1 to " + std::to_string(kMostSide) + " a side and at most " + std::to_string(most) +
                " in all");
  }
}

Image make_image(int64_t height, int64_t width, int64_t channels, const std::filesystem::path& file,
                 int64_t most_pixels) {
  require_size(height, width, file, most_pixels);
  Image image;
  image.height = height;
  image.width = width;
  image.channels = channels;
  image.values.resize(static_cast<std::size_t>(height * width * channels));
  return image;
}

Image convert_channels(Image image, int64_t channels) {
  if (image.channels == channels) return image;
  Image result{image.height, image.width, channels, {}, image.from_16_bits, image.first_frame, image.turned};
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
  if (image.channels == 1) {
    std::memcpy(target, image.values.data(), pixels);
    return;
  }
  // Four pixels are three words, of which the bytes of each plane make one.
  auto *const red = reinterpret_cast<uint8_t*>(target), *const green = red + pixels, *const blue = green + pixels;
  const uint8_t* rgb = image.values.data();
  std::size_t i = 0;
  for (; i + 4 <= pixels; i += 4, rgb += 12) {
    const std::array<uint8_t, 4> r = {rgb[0], rgb[3], rgb[6], rgb[9]}, g = {rgb[1], rgb[4], rgb[7], rgb[10]},
                                 b = {rgb[2], rgb[5], rgb[8], rgb[11]};
    std::memcpy(red + i, r.data(), 4);
    std::memcpy(green + i, g.data(), 4);
    std::memcpy(blue + i, b.data(), 4);
  }
  for (; i < pixels; ++i, rgb += 3) {
    red[i] = rgb[0];
    green[i] = rgb[1];
    blue[i] = rgb[2];
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
