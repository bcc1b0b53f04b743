#include "inference/pictures/pictures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "common/files.hpp"

namespace gpunn::inference {

using data::Planes;

Planes planes_of_bytes(std::span<const uint8_t> bytes, int64_t channels, int64_t height, int64_t width) {
  Planes planes{channels, height, width};
  planes.values.resize(bytes.size());
  const std::size_t pixels = planes.plane(), count = static_cast<std::size_t>(channels);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    planes.values[i % count * pixels + i / count] = static_cast<float>(bytes[i]) / 255;
  }
  return planes;
}

LumaColours split_colours(const Planes& rgb) {
  LumaColours split{{1, rgb.height, rgb.width}, {2, rgb.height, rgb.width}};
  const std::size_t pixels = rgb.plane();
  split.luma.values.resize(pixels);
  split.colours.values.resize(2 * pixels);
  for (std::size_t i = 0; i < pixels; ++i) {
    std::array<double, 3> sum = {kBlack, kMiddle, kMiddle};
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t c = 0; c < 3; ++c) sum[row] += kToLuma[row][c] * static_cast<double>(rgb.values[c * pixels + i]);
    }
    split.luma.values[i] = static_cast<float>(sum[0]);
    split.colours.values[i] = static_cast<float>(sum[1]);
    split.colours.values[pixels + i] = static_cast<float>(sum[2]);
  }
  return split;
}

Planes join_colours(const Planes& luma, const Planes& colours) {
  Planes rgb{3, luma.height, luma.width};
  const std::size_t pixels = rgb.plane();
  rgb.values.resize(3 * pixels);
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::array<double, 3> parts = {static_cast<double>(luma.values[i]) - kBlack,
                                         static_cast<double>(colours.values[i]) - kMiddle,
                                         static_cast<double>(colours.values[pixels + i]) - kMiddle};
    for (std::size_t c = 0; c < 3; ++c) {
      double sum = 0;
      for (std::size_t k = 0; k < 3; ++k) sum += kFromLuma[c][k] * parts[k];
      rgb.values[c * pixels + i] = static_cast<float>(sum);
    }
  }
  return rgb;
}

data::Image picture_of(const Planes& planes, const Planes& opacity) {
  const std::size_t pixels = planes.plane(), channels = static_cast<std::size_t>(planes.channels);
  const std::size_t all = channels + (opacity.values.empty() ? 0 : 1);
  data::Image image{planes.height, planes.width, static_cast<int64_t>(all), {}};
  image.values.resize(pixels * all);
  const std::vector<uint8_t> bytes = data::to_bytes(planes.values), alpha = data::to_bytes(opacity.values);
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < channels; ++c) image.values[i * all + c] = bytes[c * pixels + i];
    if (!alpha.empty()) image.values[i * all + channels] = alpha[i];
  }
  return image;
}

namespace {

Planes planes_of_numbers(std::span<const uint16_t> numbers, uint16_t most, int64_t channels, const data::Picture& of) {
  Planes planes{channels, of.height, of.width};
  planes.values.resize(numbers.size());
  const std::size_t pixels = planes.plane(), count = static_cast<std::size_t>(channels);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    planes.values[i % count * pixels + i / count] = static_cast<float>(numbers[i]) / static_cast<float>(most);
  }
  return planes;
}

std::vector<uint16_t> numbers_of(const Planes& planes, uint16_t most) {
  std::vector<uint16_t> numbers(planes.values.size());
  const std::size_t pixels = planes.plane(), count = static_cast<std::size_t>(planes.channels);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto value = static_cast<double>(planes.values[i % count * pixels + i / count]);
    // A NaN is black, so that a model that fails shows.
    numbers[i] = static_cast<uint16_t>(std::lround(std::isnan(value) ? 0.0 : std::clamp(value, 0.0, 1.0) * most));
  }
  return numbers;
}

void write_png(const std::filesystem::path& file, const std::string& bytes) {
  if (file.has_parent_path()) make_folders(file.parent_path());
  write_atomically(file, bytes);
}

}  // namespace

Planes planes_of(const data::Picture& picture) {
  return planes_of_numbers(picture.values, picture.most(), picture.channels, picture);
}

Planes opacity_of(const data::Picture& picture) {
  if (picture.opacity.empty()) return {};
  return planes_of_numbers(picture.opacity, picture.most(), 1, picture);
}

data::Picture picture_like(const data::Picture& like, const Planes& planes, const Planes& opacity) {
  return {.height = planes.height,
          .width = planes.width,
          .channels = planes.channels,
          .bits = like.bits,
          .values = numbers_of(planes, like.most()),
          .opacity = numbers_of(opacity, like.most()),
          .tags = like.tags.for_picture(planes.channels == 1)};
}

void write_picture(const std::filesystem::path& file, const data::Image& image) {
  write_png(file, data::encode_png(image));
}

void write_picture(const std::filesystem::path& file, const data::Picture& picture) {
  write_png(file, data::encode_png(picture));
}

}  // namespace gpunn::inference
