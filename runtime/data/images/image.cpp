#include "data/images/image.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpunn::data {

Image make_image(int64_t height, int64_t width, int64_t channels, const std::filesystem::path& file) {
  if (height <= 0 || width <= 0 || height > kMostSide || width > kMostSide || height * width > kMostPixels) {
    throw Error(file.string() + ": the image is " + std::to_string(width) + " by " + std::to_string(height) +
                " pixels; expected 1 to " + std::to_string(kMostSide) + " a side and at most " +
                std::to_string(kMostPixels) + " in all");
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
      const uint8_t* rgb = image.values.data() + 3 * i;
      result.values[i] = static_cast<uint8_t>((299U * rgb[0] + 587U * rgb[1] + 114U * rgb[2] + 500U) / 1000U);
    } else {
      std::fill_n(result.values.data() + 3 * i, 3, image.values[i]);
    }
  }
  return result;
}

namespace {

// The source positions that make one target position, and their weights, which add up to 1.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Taps> triangle_taps(int64_t source, int64_t target) {
  const double scale = static_cast<double>(source) / static_cast<double>(target);
  const double reach = std::max(1.0, scale);
  std::vector<Taps> all(static_cast<std::size_t>(target));
  for (int64_t i = 0; i < target; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre - reach)));
    const auto last = std::min<int64_t>(source - 1, static_cast<int64_t>(std::ceil(centre + reach)));
    Taps& taps = all[static_cast<std::size_t>(i)];
    taps.first = first;
    double sum = 0;
    for (int64_t j = first; j <= last; ++j) {
      const double distance = std::abs(static_cast<double>(j) + 0.5 - centre) / reach;
      const double weight = std::max(0.0, 1 - distance);
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
  }
  return all;
}

}  // namespace

Image resize(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  const int64_t channels = image.channels;
  const std::vector<Taps> across = triangle_taps(image.width, width);
  const std::vector<Taps> down = triangle_taps(image.height, height);
  const auto row_values = static_cast<std::size_t>(width * channels);
  Image result{height, width, channels, {}, image.from_16_bits, image.first_frame};
  result.values.resize(static_cast<std::size_t>(height) * row_values);

  // Source rows are narrowed one by one and added to the target rows that use them: no intermediate picture.
  std::vector<float> sums(static_cast<std::size_t>(height) * row_values);
  std::vector<float> narrow(row_values);
  int64_t first_user = 0;
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* source = image.values.data() + y * image.width * channels;
    for (int64_t x = 0; x < width; ++x) {
      const Taps& taps = across[static_cast<std::size_t>(x)];
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (std::size_t k = 0; k < taps.weights.size(); ++k) {
          sum += taps.weights[k] * static_cast<float>(source[(taps.first + static_cast<int64_t>(k)) * channels + c]);
        }
        narrow[static_cast<std::size_t>(x * channels + c)] = sum;
      }
    }
    const auto end_of = [&](int64_t row) {
      const Taps& taps = down[static_cast<std::size_t>(row)];
      return taps.first + static_cast<int64_t>(taps.weights.size());
    };
    while (first_user < height && end_of(first_user) <= y) ++first_user;
    for (int64_t row = first_user; row < height && down[static_cast<std::size_t>(row)].first <= y; ++row) {
      if (end_of(row) <= y) continue;
      const Taps& taps = down[static_cast<std::size_t>(row)];
      const float weight = taps.weights[static_cast<std::size_t>(y - taps.first)];
      float* target = sums.data() + static_cast<std::size_t>(row) * row_values;
      for (std::size_t i = 0; i < row_values; ++i) target[i] += weight * narrow[i];
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    result.values[i] = static_cast<uint8_t>(std::clamp(sums[i] + 0.5F, 0.0F, 255.0F));
  }
  return result;
}

Image crop_to_shape(Image image, int64_t height, int64_t width) {
  // Compared as products, so that equal shapes are told exactly.
  const bool too_wide = image.width * height > image.height * width;
  const int64_t rows = too_wide ? image.height : std::max<int64_t>(1, image.width * height / width);
  const int64_t columns = too_wide ? std::max<int64_t>(1, image.height * width / height) : image.width;
  if (rows == image.height && columns == image.width) return image;
  Image result{rows, columns, image.channels, {}, image.from_16_bits, image.first_frame};
  const auto row_bytes = static_cast<std::size_t>(columns * image.channels);
  result.values.resize(static_cast<std::size_t>(rows) * row_bytes);
  const int64_t top = (image.height - rows) / 2;
  const int64_t left = (image.width - columns) / 2;
  for (int64_t y = 0; y < rows; ++y) {
    const uint8_t* source = image.values.data() + ((y + top) * image.width + left) * image.channels;
    std::copy_n(source, row_bytes, result.values.data() + static_cast<std::size_t>(y) * row_bytes);
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
