#include "report/pictures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "fields/standardise.hpp"

namespace gpunn::reports {

using chart::Raster;

namespace {

constexpr int64_t kTile = 40, kGap = 4;  // pixels of a filter, and between two
constexpr int64_t kMostFilters = 256, kMostSide = 4096;
constexpr int64_t kMostRows = 16, kMostChannels = 16;  // where a tile is a channel
constexpr std::size_t kHeatMapSide = 480;

// From the smallest value to the largest.
std::vector<uint8_t> stretched(DType type, std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = fields::element_of(type, bytes, i);
  double low = 0, high = 0;
  bool any = false;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    any = true;
  }
  std::vector<uint8_t> result;
  for (const double value : values) {
    const double share = std::isfinite(value) && high > low ? (value - low) / (high - low) : 0;
    result.push_back(static_cast<uint8_t>(std::lround(255 * share)));
  }
  return result;
}

// -most to 0, most to 255.
uint8_t grey(float weight, float most) {
  if (!std::isfinite(weight) || most <= 0) return 128;
  return static_cast<uint8_t>(std::lround(127.5F + 127.5F * std::clamp(weight / most, -1.0F, 1.0F)));
}

float largest_magnitude(std::span<const float> weights) {
  float most = 0;
  for (const float weight : weights) {
    if (std::isfinite(weight)) most = std::max(most, std::abs(weight));
  }
  return most;
}

// A transparent image for tiles of kh by kw weights, each drawn `scale` pixels wide.
class Tiles {
 public:
  Tiles(int64_t columns, int64_t rows, int64_t kh, int64_t kw)
      : kh_(kh), kw_(kw), scale_(std::max<int64_t>(1, kTile / std::max(kh, kw))) {
    raster_.width = columns * (kw * scale_ + kGap) - kGap;
    raster_.height = rows * (kh * scale_ + kGap) - kGap;
    raster_.channels = 4;
    raster_.pixels.assign(static_cast<std::size_t>(raster_.width * raster_.height * 4), 0);
  }

  // `colour_at(y, x)` is the tile's, of kh by kw.
  template <class F>
  void draw(int64_t column, int64_t row, F colour_at) {
    const int64_t left = column * (kw_ * scale_ + kGap), top = row * (kh_ * scale_ + kGap);
    for (int64_t y = 0; y < kh_ * scale_; ++y) {
      for (int64_t x = 0; x < kw_ * scale_; ++x) {
        const std::array<uint8_t, 3> colour = colour_at(y / scale_, x / scale_);
        const auto at = static_cast<std::size_t>(((top + y) * raster_.width + left + x) * 4);
        std::ranges::copy(colour, raster_.pixels.begin() + static_cast<std::ptrdiff_t>(at));
        raster_.pixels[at + 3] = 255;
      }
    }
  }
  Raster take() { return std::move(raster_); }

 private:
  int64_t kh_, kw_, scale_;
  Raster raster_;
};

}  // namespace

std::optional<Raster> picture_of(const TensorType& sample, std::span<const std::byte> values) {
  if (sample.shape.size() != 4 || values.size() != sample.bytes()) return std::nullopt;
  const int64_t channels = sample.shape[1], height = sample.shape[2], width = sample.shape[3];
  if ((channels != 1 && channels != 3) || height < 1 || width < 1 || height > kMostSide || width > kMostSide) {
    return std::nullopt;
  }
  std::vector<uint8_t> planes;
  if (sample.dtype == DType::u8) {
    planes.resize(values.size());
    std::memcpy(planes.data(), values.data(), values.size());
  } else if (sample.dtype == DType::f32 || sample.dtype == DType::f64) {
    planes = stretched(sample.dtype, values);
  } else {
    return std::nullopt;
  }
  Raster raster{width, height, channels, std::vector<uint8_t>(planes.size())};
  const int64_t pixels = height * width;
  for (int64_t i = 0; i < pixels; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      raster.pixels[static_cast<std::size_t>(i * channels + c)] = planes[static_cast<std::size_t>(c * pixels + i)];
    }
  }
  return raster;
}

std::optional<FilterGrid> filter_grid(const Shape& shape, std::span<const float> weights) {
  if (shape.size() != 4) return std::nullopt;
  const int64_t filters = shape[0], channels = shape[1], kh = shape[2], kw = shape[3];
  if (filters < 1 || channels < 1 || kh < 1 || kw < 1 || kh > 256 || kw > 256) return std::nullopt;
  const int64_t plane = kh * kw;
  if (weights.size() != static_cast<std::size_t>(filters * channels * plane)) return std::nullopt;
  const auto filter = [&](int64_t f) {
    return weights.subspan(static_cast<std::size_t>(f * channels * plane), static_cast<std::size_t>(channels * plane));
  };

  FilterGrid grid{.raster = {}, .filters = filters, .channels = channels};
  grid.by_channel = channels != 1 && channels != 3;
  if (grid.by_channel) {
    grid.shown = std::min(filters, kMostRows);
    grid.shown_channels = std::min(channels, kMostChannels);
    Tiles tiles(grid.shown_channels, grid.shown, kh, kw);
    for (int64_t f = 0; f < grid.shown; ++f) {
      const std::span<const float> own = filter(f);
      const float most = largest_magnitude(own);
      for (int64_t c = 0; c < grid.shown_channels; ++c) {
        tiles.draw(c, f, [&](int64_t y, int64_t x) {
          const uint8_t value = grey(own[static_cast<std::size_t>(c * plane + y * kw + x)], most);
          return std::array{value, value, value};
        });
      }
    }
    grid.raster = tiles.take();
    return grid;
  }
  grid.shown = std::min(filters, kMostFilters);
  grid.shown_channels = channels;
  const int64_t columns = std::min<int64_t>(grid.shown, grid.shown > 32 ? 16 : 8);
  Tiles tiles(columns, (grid.shown + columns - 1) / columns, kh, kw);
  for (int64_t f = 0; f < grid.shown; ++f) {
    const std::span<const float> own = filter(f);
    const float most = largest_magnitude(own);
    tiles.draw(f % columns, f / columns, [&](int64_t y, int64_t x) {
      std::array<uint8_t, 3> colour{};
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t channel = channels == 3 ? c : 0;
        colour[static_cast<std::size_t>(c)] = grey(own[static_cast<std::size_t>(channel * plane + y * kw + x)], most);
      }
      return colour;
    });
  }
  grid.raster = tiles.take();
  return grid;
}

Raster heat_map(const ConfusionMatrix& matrix) {
  constexpr std::array<uint8_t, 3> kRight = {40, 130, 200}, kWrong = {213, 110, 0};
  const std::size_t scale = std::max<std::size_t>(1, kHeatMapSide / matrix.side()), side = matrix.side() * scale;
  Raster raster{static_cast<int64_t>(side), static_cast<int64_t>(side), 4, std::vector<uint8_t>(side * side * 4)};
  for (std::size_t y = 0; y < side; ++y) {
    const std::size_t truth = y / scale;
    const int64_t all = matrix.row_sum(truth);
    for (std::size_t x = 0; x < side; ++x) {
      const std::size_t predicted = x / scale, at = (y * side + x) * 4;
      const int64_t count = matrix.at(truth, predicted);
      std::ranges::copy(truth == predicted ? kRight : kWrong, raster.pixels.begin() + static_cast<std::ptrdiff_t>(at));
      // What is rare still shows.
      const double share = all > 0 ? static_cast<double>(count) / static_cast<double>(all) : 0;
      raster.pixels[at + 3] = static_cast<uint8_t>(count > 0 ? std::lround(255 * (0.25 + 0.75 * std::sqrt(share))) : 0);
    }
  }
  return raster;
}

}  // namespace gpunn::reports
