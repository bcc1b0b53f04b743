// Digits of several sizes on one image, each with its box.
#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/parallel.hpp"
#include "config/key_builders.hpp"
#include "data/detection/box_dataset.hpp"
#include "data/digits/digits.hpp"
#include "data/registry.hpp"
#include "data/synthetic/philox_source.hpp"
#include "data/synthetic/synthetic.hpp"

namespace gpunn::data {

namespace {

using fields::Box;

constexpr int64_t kTrainCanvases = 2000, kTestCanvases = 400, kUsualCanvas = 128;
constexpr uint64_t kBlocksOfCanvas = 1 << 14;
constexpr int kPlaces = 40;            // that are tried for a digit
constexpr double kMostOverlap = 0.15;  // of two digits' boxes
constexpr double kSmallest = 0.7, kLargest = 2;
constexpr uint8_t kInk = 64;  // from here on a pixel is the digit's

// Images of single digits that canvases are made of.
struct DigitPool {
  int64_t side = kDigitSize;
  std::span<const std::byte> pixels;
  std::vector<int32_t> labels;
};

// The part of an image that shows ink; nothing of an empty one.
Box ink_of(const std::byte* image, int64_t side) {
  Box box{static_cast<double>(side), static_cast<double>(side), 0, 0};
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      if (static_cast<uint8_t>(image[y * side + x]) < kInk) continue;
      const auto u = static_cast<double>(x), v = static_cast<double>(y);
      box = {std::min(box.left, u), std::min(box.top, v), std::max(box.right, u + 1), std::max(box.bottom, v + 1)};
    }
  }
  return box;
}

// Puts the digit, scaled, at a place where it hides no other. False: none was found.
bool put_digit(const DigitPool& pool, std::size_t index, PhiloxSource& random, BoxedImage& canvas) {
  const auto size = static_cast<std::size_t>(pool.side * pool.side);
  const std::byte* const pixels = pool.pixels.data() + index * size;
  Image digit{pool.side, pool.side, 1, std::vector<uint8_t>(size)};
  std::transform(pixels, pixels + size, digit.values.begin(), [](std::byte b) { return static_cast<uint8_t>(b); });
  const double scale = kSmallest * std::pow(kLargest / kSmallest, random.uniform(0, 1));
  const auto side = static_cast<int64_t>(std::lround(scale * static_cast<double>(pool.side)));
  digit = resize(digit, side, side);
  const Box ink = ink_of(reinterpret_cast<const std::byte*>(digit.values.data()), side);
  const int64_t height = canvas.image.height, width = canvas.image.width;
  if (!ink.has_area() || ink.width() > static_cast<double>(width) || ink.height() > static_cast<double>(height)) {
    return false;
  }
  for (int i = 0; i < kPlaces; ++i) {
    const auto anywhere = [&](double low, double high, int64_t room) {
      const auto free = static_cast<uint32_t>(room - static_cast<int64_t>(high - low) + 1);
      return static_cast<int64_t>(random.below(free)) - static_cast<int64_t>(low);
    };
    const int64_t left = anywhere(ink.left, ink.right, width), top = anywhere(ink.top, ink.bottom, height);
    const auto x = static_cast<double>(left), y = static_cast<double>(top);
    const Box box{ink.left + x, ink.top + y, ink.right + x, ink.bottom + y};
    const auto hides = [&](const fields::TrueBox& other) {
      const double shared = fields::area_of(fields::intersection(box, other.box));
      return shared > kMostOverlap * std::min(fields::area_of(box), fields::area_of(other.box));
    };
    if (std::ranges::any_of(canvas.objects, hides)) continue;
    const auto channels = static_cast<std::size_t>(canvas.image.channels);
    for (auto v = static_cast<int64_t>(ink.top); v < static_cast<int64_t>(ink.bottom); ++v) {
      for (auto u = static_cast<int64_t>(ink.left); u < static_cast<int64_t>(ink.right); ++u) {
        const uint8_t value = digit.values[static_cast<std::size_t>(v * side + u)];
        uint8_t* const to =
            canvas.image.values.data() + static_cast<std::size_t>((top + v) * width + left + u) * channels;
        for (std::size_t c = 0; c < channels; ++c) to[c] = std::max(to[c], value);
      }
    }
    canvas.objects.push_back({.box = box, .category = pool.labels[index]});
    return true;
  }
  return false;
}

std::vector<BoxedImage> draw_canvases(const DigitPool& pool, const BoxSet& settings, uint64_t seed, uint64_t stream,
                                      int64_t count) {
  std::vector<BoxedImage> canvases(static_cast<std::size_t>(count));
  for_row_stretches(count, 16, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      PhiloxSource random(seed, stream, static_cast<uint64_t>(i) * kBlocksOfCanvas);
      BoxedImage& canvas = canvases[static_cast<std::size_t>(i)];
      canvas.name = "digits " + std::to_string(i);
      canvas.image = {settings.image_size[0], settings.image_size[1], settings.channels, {}};
      canvas.image.values.assign(
          static_cast<std::size_t>(canvas.image.height * canvas.image.width * canvas.image.channels), 0);
      for (int64_t digit = 0; digit < settings.digits; ++digit) {
        put_digit(pool, random.below(static_cast<uint32_t>(pool.labels.size())), random, canvas);
      }
    }
  });
  return canvases;
}

DigitPool pool_of(const Split& split) {
  return {.side = split.samples.shape[2], .pixels = split.sample_bytes(), .labels = labels_of(split)};
}

Dataset make_drawn_digits(const DataConfig& config) {
  const BoxSet settings = box_settings(config, {kUsualCanvas, kUsualCanvas});
  DataConfig of_digits;
  of_digits.dataset = settings.digit_source;
  of_digits.path = config.path;
  of_digits.seed = config.seed;
  of_digits.offline_fallback = settings.digit_source == "digits" ? "" : config.offline_fallback;
  const Dataset digits = load_dataset(of_digits);
  const int64_t train = synthetic_rows(config.synthetic_train, kTrainCanvases, "synthetic_train");
  const int64_t test = synthetic_rows(config.synthetic_test, kTestCanvases, "synthetic_test");
  DataConfig sized = config;
  sized.kind = settings;
  Dataset set = box_dataset(
      images_in_memory(draw_canvases(pool_of(digits.train), settings, config.seed, kCanvasTrainStream, train)),
      images_in_memory(draw_canvases(pool_of(digits.test), settings, config.seed, kCanvasTestStream, test)),
      digit_names(), sized);
  set.name = "drawn_digits";
  set.source = "made of " + digits.name + ", seed " + std::to_string(config.seed);
  set.fallback_of = digits.fallback_of;
  return set;
}

}  // namespace

DatasetRow drawn_digits_row() {
  DatasetRow row;
  row.name = "drawn_digits";
  row.description =
      "drawn by the program: up to five digits of several sizes on an image of 128x128, each with its box, for task "
      "detection, 2000 to train on and 400 to evaluate on";
  row.origin = Origin::synthetic;
  row.make = make_drawn_digits;
  row.learnt = "boxes";
  row.keys = [] {
    using namespace config;
    using B = BoxSet;
    return box_keys(
        {integer("digits", &B::digits, between(0, 100), "Digits on an image, fewer where there is no room."),
         word("digit_source", &B::digit_source, {"digits", "mnist"},
              "The set that they are taken from: `digits`, drawn by the program, or `mnist`.")},
        {kUsualCanvas, kUsualCanvas});
  };
  row.check = check_boxes;
  return row;
}

}  // namespace gpunn::data
