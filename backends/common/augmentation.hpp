// RANDOM_SHIFT, RANDOM_AFFINE and RANDOM_ZOOM, of images and of label maps, RANDOM_COLOR, RANDOM_ERASE and MIX_ROWS.
//
// This file defines the effect on each image and each pixel for all backends, in f64 where values are rounded. Backends
// therefore differ at most in the last rounding to f32.
#pragma once

#include <gpunn/random.h>

#include <cstdint>
#include <numbers>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct ImageBatch {
  int64_t images = 0;
  int64_t channels = 0;
  int64_t rows = 0;
  int64_t columns = 0;

  constexpr int64_t plane() const { return rows * columns; }
  constexpr int64_t image() const { return channels * plane(); }
  constexpr int64_t elements() const { return images * image(); }
};

// Label maps [N,H,W] are images of one channel.
inline ImageBatch images_of(const OpDesc& desc) {
  const gpunn_tensor& x = desc.input(0);
  if (x.rank == 3) return {.images = x.dim[0], .channels = 1, .rows = x.dim[1], .columns = x.dim[2]};
  return {.images = x.dim[0], .channels = x.dim[1], .rows = x.dim[2], .columns = x.dim[3]};
}

// floor(u * n), where u in [0, 1) is the number that a word stands for; 0 <= n < 2^40. Computed in integers, since a
// product of two floats might be rounded up to n.
constexpr int64_t floor_of_share(uint32_t word, int64_t n) {
  return static_cast<int64_t>((static_cast<uint64_t>(word >> 8) * static_cast<uint64_t>(n)) >> 24);
}

// The Philox block that image i of the batch draws at `counter`.
constexpr uint64_t block_of_image(const ImageBatch& batch, int64_t counter, int64_t i) {
  return static_cast<uint64_t>(counter) * static_cast<uint64_t>(batch.images) + static_cast<uint64_t>(i);
}

struct Shift {
  ImageBatch batch;
  int64_t reach[2] = {0, 0};
  float flip = 0.0F;
  uint64_t seed = 0;
  uint64_t stream = 0;
};

inline Shift shift_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_random_shift_attrs>();
  return {.batch = images_of(desc),
          .reach = {attrs.reach[0], attrs.reach[1]},
          .flip = attrs.flip,
          .seed = attrs.seed,
          .stream = attrs.stream};
}

// The shift of one image: y[h,w] = x[h + rows, w' + columns].
struct Shifted {
  int64_t rows = 0;
  int64_t columns = 0;
  bool flipped = false;
};

constexpr Shifted shifted_by(const Shift& plan, const gpunn_random_words& words) {
  return {floor_of_share(words.word[0], 2 * plan.reach[0] + 1) - plan.reach[0],
          floor_of_share(words.word[1], 2 * plan.reach[1] + 1) - plan.reach[1],
          static_cast<float>(words.word[2] >> 8) * 0x1p-24F < plan.flip};
}

// The number u in [0, 1) that a word stands for.
constexpr double share_of(uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

struct Affine {
  ImageBatch batch;
  double rotate = 0.0;  // radians
  double translate[2] = {0.0, 0.0};
  double scale_low = 1.0;
  double scale_high = 1.0;
  uint64_t seed = 0;
  uint64_t stream = 0;
};

inline Affine affine_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_random_affine_attrs>();
  return {.batch = images_of(desc),
          .rotate = static_cast<double>(attrs.rotate) * std::numbers::pi / 180.0,
          .translate = {static_cast<double>(attrs.translate[0]), static_cast<double>(attrs.translate[1])},
          .scale_low = static_cast<double>(attrs.scale_low),
          .scale_high = static_cast<double>(attrs.scale_high),
          .seed = attrs.seed,
          .stream = attrs.stream};
}

// The rotation of an image, in radians counter-clockwise.
constexpr double turned_by(const Affine& plan, const gpunn_random_words& words) {
  return (2.0 * share_of(words.word[0]) - 1.0) * plan.rotate;
}

// The inverse map from y to x: { cos, sin } divided by the factor by which the image grows, and the translation.
struct WayBack {
  double cosine = 1.0;
  double sine = 0.0;
  double rows = 0.0;
  double columns = 0.0;
};

// Takes the cosine and sine of turned_by().
constexpr WayBack way_back(const Affine& plan, const gpunn_random_words& words, double cosine, double sine) {
  const double factor = plan.scale_low + share_of(words.word[1]) * (plan.scale_high - plan.scale_low);
  return {cosine / factor, sine / factor,
          (2.0 * share_of(words.word[2]) - 1.0) * plan.translate[0] * static_cast<double>(plan.batch.rows),
          (2.0 * share_of(words.word[3]) - 1.0) * plan.translate[1] * static_cast<double>(plan.batch.columns)};
}

// A place in an image, in pixels; the middle of the first pixel is 0.
struct Place {
  double row = 0.0;
  double column = 0.0;
};

// x interpolated at a place between pixels, in the plane of one channel.
constexpr float sample(const ImageBatch& batch, const float* plane, const Place& place, float border) {
  const auto [row, column] = place;
  // Checked first: a position far outside may exceed any integer.
  const bool near = row > -1.0 && row < static_cast<double>(batch.rows) && column > -1.0 &&
                    column < static_cast<double>(batch.columns);
  if (!near) return border;
  const int64_t top = static_cast<int64_t>(row + 1.0) - 1;  // rounds down, since row + 1 is above 0
  const int64_t left = static_cast<int64_t>(column + 1.0) - 1;
  const double down = row - static_cast<double>(top);
  const double right = column - static_cast<double>(left);
  double corner[2][2] = {};
  for (int64_t r = 0; r < 2; ++r) {
    for (int64_t c = 0; c < 2; ++c) {
      const int64_t h = top + r;
      const int64_t w = left + c;
      const bool inside = h >= 0 && h < batch.rows && w >= 0 && w < batch.columns;
      corner[r][c] = static_cast<double>(inside ? plane[h * batch.columns + w] : border);
    }
  }
  const double above = corner[0][0] * (1.0 - right) + corner[0][1] * right;
  const double below = corner[1][0] * (1.0 - right) + corner[1][1] * right;
  return static_cast<float>(above * (1.0 - down) + below * down);
}

// The label of the pixel that is nearest to a place.
constexpr int32_t sample(const ImageBatch& batch, const int32_t* plane, const Place& place, int32_t border) {
  const double row = place.row + 0.5;
  const double column = place.column + 0.5;
  // Checked first: a position far outside may exceed any integer.
  const bool inside = row >= 0.0 && row < static_cast<double>(batch.rows) && column >= 0.0 &&
                      column < static_cast<double>(batch.columns);
  return inside ? plane[static_cast<int64_t>(row) * batch.columns + static_cast<int64_t>(column)] : border;
}

// The place in x that y[h,w] shows.
constexpr Place affine_place(const ImageBatch& batch, const WayBack& back, int64_t h, int64_t w) {
  const double row_middle = static_cast<double>(batch.rows - 1) / 2.0;
  const double column_middle = static_cast<double>(batch.columns - 1) / 2.0;
  const double down = static_cast<double>(h) - row_middle - back.rows;
  const double right = static_cast<double>(w) - column_middle - back.columns;
  return {row_middle + down * back.cosine + right * back.sine, column_middle + right * back.cosine - down * back.sine};
}

struct Zoom {
  ImageBatch batch;
  double low = 1.0;
  double high = 1.0;
  uint64_t seed = 0;
  uint64_t stream = 0;
};

inline Zoom zoom_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_random_zoom_attrs>();
  return {.batch = images_of(desc),
          .low = static_cast<double>(attrs.low),
          .high = static_cast<double>(attrs.high),
          .seed = attrs.seed,
          .stream = attrs.stream};
}

// The window of an image that is enlarged to its size.
struct Window {
  double factor = 1.0;
  double top = 0.0;
  double left = 0.0;
};

constexpr Window window_of(const Zoom& plan, const gpunn_random_words& words) {
  const double factor = plan.low + share_of(words.word[0]) * (plan.high - plan.low);
  const auto rows = static_cast<double>(plan.batch.rows);
  const auto columns = static_cast<double>(plan.batch.columns);
  return {factor, share_of(words.word[1]) * (rows - rows / factor),
          share_of(words.word[2]) * (columns - columns / factor)};
}

// The nearest place to `place` in a line of `size` pixels.
constexpr double within(double place, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  return place < 0.0 ? 0.0 : place > last ? last : place;
}

// The place in x that y[h,w] shows. It is never outside the image.
constexpr Place zoomed_place(const ImageBatch& batch, const Window& window, int64_t h, int64_t w) {
  return {within(window.top + (static_cast<double>(h) + 0.5) / window.factor - 0.5, batch.rows),
          within(window.left + (static_cast<double>(w) + 0.5) / window.factor - 0.5, batch.columns)};
}

struct Color {
  ImageBatch batch;
  double brightness = 0.0;  // reaches; 0 leaves a part out
  double contrast = 0.0;
  double saturation = 0.0;
  double white = 1.0;
  uint64_t seed = 0;
  uint64_t stream = 0;
};

inline Color color_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_random_color_attrs>();
  return {.batch = images_of(desc),
          .brightness = static_cast<double>(attrs.brightness),
          .contrast = static_cast<double>(attrs.contrast),
          .saturation = static_cast<double>(attrs.saturation),
          .white = static_cast<double>(attrs.white),
          .seed = attrs.seed,
          .stream = attrs.stream};
}

// The colour changes of one image.
struct Tones {
  double brightness = 1.0;
  double contrast = 1.0;
  double saturation = 1.0;
  double mean = 0.0;  // grey of the image when its brightness has changed; of the contrast alone
};

constexpr Tones tones_of(const Color& plan, const gpunn_random_words& words) {
  return {1.0 + (2.0 * share_of(words.word[0]) - 1.0) * plan.brightness,
          1.0 + (2.0 * share_of(words.word[1]) - 1.0) * plan.contrast,
          1.0 + (2.0 * share_of(words.word[2]) - 1.0) * plan.saturation, 0.0};
}

constexpr double held(const Color& plan, double v) { return v < 0.0 ? 0.0 : v > plan.white ? plan.white : v; }

// x, a normalised number, with its brightness changed.
constexpr double lit(const Color& plan, const Tones& tones, float x, float scale, float shift) {
  const double v = (static_cast<double>(x) - static_cast<double>(shift)) / static_cast<double>(scale);
  return plan.brightness > 0.0 ? held(plan, v * tones.brightness) : v;
}

// x with its brightness and contrast changed.
constexpr double toned(const Color& plan, const Tones& tones, float x, float scale, float shift) {
  const double v = lit(plan, tones, x, scale, shift);
  return plan.contrast > 0.0 ? held(plan, tones.mean + tones.contrast * (v - tones.mean)) : v;
}

constexpr double share_of_grey(const Color& plan, int64_t channel) {
  if (plan.batch.channels != 3) return 1.0 / static_cast<double>(plan.batch.channels);
  return channel == 0 ? 0.299 : channel == 1 ? 0.587 : 0.114;
}

// The grey value of the pixel whose first channel is at x, with its brightness changed. The image's mean is taken over
// these values.
constexpr double lit_grey(const Color& plan, const Tones& tones, const float* x, const float* scale,
                          const float* shift) {
  double grey = 0.0;
  for (int64_t c = 0; c < plan.batch.channels; ++c) {
    grey += share_of_grey(plan, c) * lit(plan, tones, x[c * plan.batch.plane()], scale[c], shift[c]);
  }
  return grey;
}

// One channel of y, normalised again, of the pixel whose first channel is at x.
constexpr float color_pixel(const Color& plan, const Tones& tones, const float* x, int64_t channel, const float* scale,
                            const float* shift) {
  const int64_t plane = plan.batch.plane();
  double v = toned(plan, tones, x[channel * plane], scale[channel], shift[channel]);
  if (plan.saturation > 0.0) {
    double grey = 0.0;
    for (int64_t c = 0; c < plan.batch.channels; ++c) {
      grey += share_of_grey(plan, c) * toned(plan, tones, x[c * plane], scale[c], shift[c]);
    }
    v = held(plan, grey + tones.saturation * (v - grey));
  }
  return static_cast<float>(v * static_cast<double>(scale[channel]) + static_cast<double>(shift[channel]));
}

struct Erase {
  ImageBatch batch;
  int64_t size[2] = {0, 0};
  float p = 0.0F;
  uint64_t seed = 0;
  uint64_t stream = 0;
};

inline Erase erase_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_random_erase_attrs>();
  return {.batch = images_of(desc),
          .size = {attrs.size[0], attrs.size[1]},
          .p = attrs.p,
          .seed = attrs.seed,
          .stream = attrs.stream};
}

// The erased pixels: rows [top, bottom), columns [left, right), which may lie partly outside the image.
struct Rectangle {
  int64_t top = 0, bottom = 0;
  int64_t left = 0, right = 0;

  constexpr bool holds(int64_t row, int64_t column) const {
    return row >= top && row < bottom && column >= left && column < right;
  }
};

constexpr Rectangle erased_from(const Erase& plan, const gpunn_random_words& words) {
  if (!(static_cast<float>(words.word[2] >> 8) * 0x1p-24F < plan.p)) return {};
  const int64_t top = floor_of_share(words.word[0], plan.batch.rows) - plan.size[0] / 2;
  const int64_t left = floor_of_share(words.word[1], plan.batch.columns) - plan.size[1] / 2;
  return {top, top + plan.size[0], left, left + plan.size[1]};
}

// MIX_ROWS: x[rows,...], with row_size elements a row.
struct MixRows {
  int64_t rows = 0;
  int64_t row_size = 0;
};

inline MixRows mix_rows_of(const OpDesc& desc) {
  return {.rows = desc.input(0).dim[0], .row_size = size_from(desc.input(0), 1)};
}

// The row that row i is mixed with; -1 if row i does not count. count comes from device memory.
constexpr int64_t partner_of(const MixRows& plan, int64_t i, int32_t count) {
  const int64_t counted = count < plan.rows ? int64_t{count} : plan.rows;
  return i < counted ? counted - 1 - i : -1;
}

}  // namespace gpunn::backends
