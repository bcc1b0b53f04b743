#include "data/variation/picture_changes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

namespace gpunn::data {

namespace {

using Table = std::array<uint8_t, 256>;

// From `other` at 0 to `value` at 1, and beyond. Pillow truncates.
uint8_t blended(uint8_t other, uint8_t value, float factor) {
  const float result = static_cast<float>(other) + factor * static_cast<float>(value - other);
  return static_cast<uint8_t>(std::clamp(result, 0.0F, 255.0F));
}

template <class F>
Table table_of(F value_of) {
  Table table;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = value_of(static_cast<int>(i));
  return table;
}

void look_up(Image& image, const Table& table) {
  for (uint8_t& value : image.values) value = table[value];
}

// A table for each channel, made of how often each value occurs there.
template <class F>
void look_up_by_channel(Image& image, F table_of_counts) {
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t c = 0; c < channels; ++c) {
    std::array<int64_t, 256> counts = {};
    for (std::size_t i = c; i < image.values.size(); i += channels) ++counts[image.values[i]];
    const Table table = table_of_counts(counts);
    for (std::size_t i = c; i < image.values.size(); i += channels) image.values[i] = table[image.values[i]];
  }
}

constexpr Table unchanged() {
  Table table = {};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(i);
  return table;
}

}  // namespace

void change_brightness(Image& image, double factor) {
  look_up(image, table_of([&](int v) { return blended(0, static_cast<uint8_t>(v), static_cast<float>(factor)); }));
}

void change_colour(Image& image, double factor) {
  if (image.channels == 1) return;
  const Image grey = convert_channels(image, 1);
  for (std::size_t i = 0; i < image.values.size(); ++i) {
    image.values[i] = blended(grey.values[i / 3], image.values[i], static_cast<float>(factor));
  }
}

void change_contrast(Image& image, double factor) {
  const Image grey = convert_channels(image, 1);
  uint64_t sum = 0;
  for (const uint8_t value : grey.values) sum += value;
  const uint64_t pixels = grey.values.size();
  const auto mean = static_cast<uint8_t>((2 * sum + pixels) / (2 * pixels));
  look_up(image, table_of([&](int v) { return blended(mean, static_cast<uint8_t>(v), static_cast<float>(factor)); }));
}

// The smooth image is a mean of nine pixels, in which the middle one counts five times; its border is as it was.
void change_sharpness(Image& image, double factor) {
  const std::vector<uint8_t> from = image.values;
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t row = static_cast<std::size_t>(image.width) * channels;
  for (std::size_t y = 1; y + 1 < static_cast<std::size_t>(image.height); ++y) {
    for (std::size_t i = y * row + channels; i + channels < (y + 1) * row; ++i) {
      int sum = 4 * from[i];
      for (const std::size_t line : {i - row, i, i + row}) {
        sum += from[line - channels] + from[line] + from[line + channels];
      }
      image.values[i] = blended(static_cast<uint8_t>((2 * sum + 13) / 26), from[i], static_cast<float>(factor));
    }
  }
}

void posterize(Image& image, int bits) {
  const auto mask = static_cast<uint8_t>(0xFFU << static_cast<unsigned>(8 - bits));
  for (uint8_t& value : image.values) value &= mask;
}

void solarize(Image& image, double threshold) {
  look_up(image, table_of([&](int v) { return static_cast<uint8_t>(v < threshold ? v : 255 - v); }));
}

void stretch_contrast(Image& image) {
  look_up_by_channel(image, [](const std::array<int64_t, 256>& counts) {
    int least = 0, most = 255;
    while (least < 255 && counts[static_cast<std::size_t>(least)] == 0) ++least;
    while (most > 0 && counts[static_cast<std::size_t>(most)] == 0) --most;
    if (most <= least) return unchanged();
    const double scale = 255.0 / (most - least), offset = -least * scale;
    return table_of(
        [&](int v) { return static_cast<uint8_t>(std::clamp(static_cast<int>(v * scale + offset), 0, 255)); });
  });
}

void equalize(Image& image) {
  look_up_by_channel(image, [](const std::array<int64_t, 256>& counts) {
    int64_t all = 0, last = 0;
    for (const int64_t count : counts) {
      all += count;
      if (count > 0) last = count;
    }
    const int64_t step = (all - last) / 255;
    if (step == 0) return unchanged();
    int64_t below = step / 2;
    return table_of([&](int v) {
      const int64_t value = below / step;
      below += counts[static_cast<std::size_t>(v)];
      return static_cast<uint8_t>(std::min<int64_t>(value, 255));
    });
  });
}

void map_pixels(Image& image, const std::array<double, 6>& m) {
  const std::vector<uint8_t> from = std::exchange(image.values, std::vector<uint8_t>(image.values.size()));
  const auto channels = static_cast<std::size_t>(image.channels);
  const auto w = static_cast<double>(image.width), h = static_cast<double>(image.height);
  uint8_t* to = image.values.data();
  for (int64_t y = 0; y < image.height; ++y) {
    const double v = static_cast<double>(y) + 0.5;
    for (int64_t x = 0; x < image.width; ++x, to += channels) {
      const double u = static_cast<double>(x) + 0.5;
      const double column = m[0] * u + m[1] * v + m[2], row = m[3] * u + m[4] * v + m[5];
      if (column < 0 || row < 0 || column >= w || row >= h) continue;
      std::memcpy(to,
                  from.data() + (static_cast<std::size_t>(row) * static_cast<std::size_t>(image.width) +
                                 static_cast<std::size_t>(column)) *
                                    channels,
                  channels);
    }
  }
}

void rotate(Image& image, double degrees) {
  const double angle = -degrees * std::numbers::pi / 180, c = std::cos(angle), s = std::sin(angle);
  const double x = static_cast<double>(image.width) / 2, y = static_cast<double>(image.height) / 2;
  map_pixels(image, {c, s, x - c * x - s * y, -s, c, y + s * x - c * y});
}

}  // namespace gpunn::data
