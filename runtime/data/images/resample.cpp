// How a picture takes another size: as Pillow's Image.resize with BILINEAR and torchvision's Resize and CenterCrop, to
// the bit.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "data/images/image.hpp"

namespace gpunn::data {

namespace {

// Weights are integers, 1 being 2^22. Eight bits of pixel and the sign leave a 32-bit sum room for weights of up to 2.
constexpr int kWeightBits = 32 - 8 - 2;
constexpr int32_t kHalfWeight = int32_t{1} << (kWeightBits - 1);

uint8_t rounded_sum(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

// One side of a picture: its length, the length it is scaled to, and the part of that which is kept.
struct ResizedSide {
  int64_t source = 0, target = 0;
  int64_t first = 0, count = 0;
};

// The source positions that make each kept target position along one side, and their weights.
class TriangleFilter {
 public:
  // A target pixel is a triangle around its centre. Growing, the triangle reaches to the next source pixels; shrinking,
  // it widens to the next target pixels, so that every source pixel counts and thin lines don't vanish.
  explicit TriangleFilter(const ResizedSide& side) {
    const double scale = static_cast<double>(side.source) / static_cast<double>(side.target);
    const double reach = std::max(1.0, scale);
    // Halves round up, as Pillow's do: the sum is not negative, or is clamped to 0.
    const auto rounded = [](double value) { return static_cast<int64_t>(std::floor(value + 0.5)); };
    const double slope = 1 / reach;
    std::vector<double> exact;
    for (int64_t i = side.first; i < side.first + side.count; ++i) {
      const double centre = (static_cast<double>(i) + 0.5) * scale;
      const int64_t first = std::max<int64_t>(0, rounded(centre - reach));
      const int64_t end = std::min<int64_t>(side.source, rounded(centre + reach));
      exact.clear();
      double sum = 0;
      for (int64_t j = first; j < end; ++j) {
        exact.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(j) - centre + 0.5) * slope)));
        sum += exact.back();
      }
      taps_.push_back({first, end, weights_.size()});
      for (const double weight : exact) {
        weights_.push_back(static_cast<int32_t>(rounded(weight / sum * static_cast<double>(1 << kWeightBits))));
      }
    }
  }

  // `target` counts from 0, the first one kept.
  int64_t first(int64_t target) const { return taps_[static_cast<std::size_t>(target)].first; }
  int64_t end(int64_t target) const { return taps_[static_cast<std::size_t>(target)].end; }
  // Of source positions first(target) to end(target).
  const int32_t* weights(int64_t target) const {
    return weights_.data() + taps_[static_cast<std::size_t>(target)].weights;
  }

 private:
  struct Taps {
    int64_t first = 0, end = 0;
    std::size_t weights = 0;  // where they begin
  };
  std::vector<Taps> taps_;
  std::vector<int32_t> weights_;
};

template <int kChannels>
void resize_row(const TriangleFilter& across, const uint8_t* source, std::span<uint8_t> target) {
  const auto width = static_cast<int64_t>(target.size()) / kChannels;
  for (int64_t x = 0; x < width; ++x) {
    std::array<int32_t, kChannels> sums{};
    sums.fill(kHalfWeight);
    const uint8_t* pixel = source + across.first(x) * kChannels;
    const int32_t* weight = across.weights(x);
    for (int64_t taps = across.end(x) - across.first(x); taps > 0; --taps, ++weight, pixel += kChannels) {
      for (std::size_t c = 0; c < kChannels; ++c) sums[c] += *weight * pixel[c];
    }
    for (std::size_t c = 0; c < kChannels; ++c) {
      target[static_cast<std::size_t>(x) * kChannels + c] = rounded_sum(sums[c]);
    }
  }
}

std::size_t image_row_bytes(const Image& image) { return static_cast<std::size_t>(image.width * image.channels); }

Image blank_image(int64_t height, int64_t width, const Image& like) {
  Image image{height, width, like.channels, {}, like.from_16_bits, like.first_frame};
  image.values.resize(static_cast<std::size_t>(height) * image_row_bytes(image));
  return image;
}

// The rows from `first` to before `end`, each as `width` pixels.
Image resize_across(const Image& image, const TriangleFilter& across, int64_t width, int64_t first, int64_t end) {
  Image result = blank_image(end - first, width, image);
  for (int64_t y = first; y < end; ++y) {
    const uint8_t* source = image.values.data() + static_cast<std::size_t>(y) * image_row_bytes(image);
    const std::span target(result.values.data() + static_cast<std::size_t>(y - first) * image_row_bytes(result),
                           image_row_bytes(result));
    if (image.channels == 1) {
      resize_row<1>(across, source, target);
    } else {
      resize_row<3>(across, source, target);
    }
  }
  return result;
}

// The columns, each as `height` pixels. The image's rows begin with row `first` of the filter's source.
Image resize_down(const Image& image, const TriangleFilter& down, int64_t height, int64_t first) {
  Image result = blank_image(height, image.width, image);
  std::vector<int32_t> sums(image_row_bytes(image));
  uint8_t* target = result.values.data();
  for (int64_t y = 0; y < height; ++y, target += sums.size()) {
    std::fill(sums.begin(), sums.end(), kHalfWeight);
    const int32_t* weight = down.weights(y);
    const uint8_t* source = image.values.data() + static_cast<std::size_t>(down.first(y) - first) * sums.size();
    for (int64_t taps = down.end(y) - down.first(y); taps > 0; --taps, ++weight, source += sums.size()) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += *weight * source[i];
    }
    std::transform(sums.begin(), sums.end(), target, rounded_sum);
  }
  return result;
}

// Two passes, with values of 8 bits between them. Across comes first but where the height shrinks by more than twice as
// many pixels as the width, which is the rule of Pillow 13; before it, across always came first. The order changes a
// value by 1 at most, here and there.
Image resized(const Image& image, const ResizedSide& rows, const ResizedSide& columns) {
  const TriangleFilter down(rows), across(columns);
  const int64_t fewer_rows = rows.source - rows.target, fewer_columns = columns.source - columns.target;
  if (fewer_rows > 0 && fewer_rows > 2 * fewer_columns) {
    return resize_across(resize_down(image, down, rows.count, 0), across, columns.count, 0, rows.count);
  }
  const int64_t first = down.first(0), end = down.end(rows.count - 1);
  return resize_down(resize_across(image, across, columns.count, first, end), down, rows.count, first);
}

ResizedSide middle_of_side(int64_t source, int64_t target, int64_t count) {
  // Half a pixel goes to the even side.
  return {source, target, std::llrint(static_cast<double>(target - count) / 2), count};
}

}  // namespace

Image resize(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  return resized(image, {image.height, height, 0, height}, {image.width, width, 0, width});
}

Image resize_and_crop(const Image& image, int64_t height, int64_t width, int64_t shorter_side) {
  // The least size that covers the part: exactly as wide, or exactly as high. The other side is rounded down.
  int64_t rows = height, columns = width;
  if (shorter_side > 0) rows = columns = shorter_side;
  if (columns * image.height >= rows * image.width) {
    rows = columns * image.height / image.width;
  } else {
    columns = rows * image.width / image.height;
  }
  if (rows == image.height && columns == image.width && rows == height && columns == width) return image;
  return resized(image, middle_of_side(image.height, rows, height), middle_of_side(image.width, columns, width));
}

Image read_colours(const std::filesystem::path& file, int64_t longer_side) {
  Image image = convert_channels(read_image_file(file), 3);
  const int64_t longer = std::max(image.height, image.width);
  if (longer_side == 0 || longer_side == longer) return image;
  const auto scaled = [&](int64_t side) { return std::max<int64_t>(1, (side * longer_side + longer / 2) / longer); };
  return resize(image, scaled(image.height), scaled(image.width));
}

double fit_inside_scale(const Image& image, int64_t height, int64_t width) {
  return std::min(static_cast<double>(height) / static_cast<double>(image.height),
                  static_cast<double>(width) / static_cast<double>(image.width));
}

Image fit_inside(const Image& image, int64_t height, int64_t width) {
  const double scale = fit_inside_scale(image, height, width);
  const auto side = [&](int64_t size, int64_t most) {
    return std::clamp<int64_t>(std::lround(static_cast<double>(size) * scale), 1, most);
  };
  const Image fitted = resize(image, side(image.height, height), side(image.width, width));
  Image canvas{height, width, image.channels, {}};
  canvas.values.assign(static_cast<std::size_t>(height * width * image.channels), kGreyAround);
  const int64_t row_bytes = fitted.width * image.channels;
  for (int64_t y = 0; y < fitted.height; ++y) {
    std::copy_n(fitted.values.begin() + y * row_bytes, row_bytes, canvas.values.begin() + y * width * image.channels);
  }
  return canvas;
}

}  // namespace gpunn::data
