// Pictures with what photographs have: soft ground, edges of all directions, texture, thin lines. They are drawn, so
// that an experiment on photographs runs anywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "common/parallel.hpp"
#include "data/images/image.hpp"
#include "data/photographs/image_pairs.hpp"
#include "data/registry.hpp"
#include "data/synthetic/philox_source.hpp"
#include "data/synthetic/synthetic.hpp"

namespace gpunn::data {

namespace {

constexpr int64_t kTrainImages = 24, kTestImages = 5;
constexpr int kShapes = 18;
constexpr uint64_t kBlocksOfImage = 1 << 16;  // of random words

using Colour = std::array<double, 3>;

Colour random_colour(PhiloxSource& random) {
  return {random.uniform(0, 1), random.uniform(0, 1), random.uniform(0, 1)};
}

// A wave over the image: brightness that rises and falls along a direction.
struct Wave {
  double x = 0, y = 0, phase = 0, height = 0;
  double at(double u, double v) const { return height * std::sin(x * u + y * v + phase); }
};

// `length` in pixels from crest to crest.
Wave random_wave(PhiloxSource& random, double least, double most, double height) {
  const double angle = random.uniform(0, 2 * std::numbers::pi);
  const double length = least * std::pow(most / least, random.uniform(0, 1));
  const double pace = 2 * std::numbers::pi / length;
  return {pace * std::cos(angle), pace * std::sin(angle), random.uniform(0, 2 * std::numbers::pi), height};
}

// A disc, a half plane or a line, with a colour and a texture.
struct DrawnShape {
  uint32_t kind = 0;
  double x = 0, y = 0, size = 0, cosine = 1, sine = 0;
  Colour colour = {};
  Wave texture, relief;

  // Negative inside, in pixels.
  double distance(double u, double v) const {
    if (kind == 0) return std::hypot(u - x, v - y) - size;
    const double along = (u - x) * cosine + (v - y) * sine, across = (v - y) * cosine - (u - x) * sine;
    if (kind == 1) return std::max(std::abs(along) - size, std::abs(across) - size / 2);
    return std::max(std::abs(across) - size / 40 - 0.5, std::abs(along) - 2 * size);
  }
};

DrawnShape random_shape(PhiloxSource& random, double height, double width) {
  DrawnShape shape;
  shape.kind = random.below(3);
  shape.x = random.uniform(0, width);
  shape.y = random.uniform(0, height);
  shape.size = random.uniform(6, width / 3);
  const double angle = random.uniform(0, std::numbers::pi);
  shape.cosine = std::cos(angle);
  shape.sine = std::sin(angle);
  shape.colour = random_colour(random);
  shape.texture = random_wave(random, 3, 16, random.uniform(0, 0.2));
  shape.relief = random_wave(random, 30, 120, random.uniform(0, 0.2));
  return shape;
}

Image draw_photograph(uint64_t seed, uint64_t stream, int64_t index) {
  PhiloxSource random(seed, stream, static_cast<uint64_t>(index) * kBlocksOfImage);
  const auto side = [&] { return 96 + int64_t{12} * random.below(8); };
  Image image{side(), side(), 3, {}};
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const Colour top = random_colour(random), bottom = random_colour(random);
  std::array<Wave, 4> ground = {};
  for (Wave& wave : ground) wave = random_wave(random, 4, 80, 0.06);
  std::vector<DrawnShape> shapes;
  for (int i = 0; i < kShapes; ++i) shapes.push_back(random_shape(random, height, width));
  image.values.reserve(static_cast<std::size_t>(image.height * image.width) * 3);
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      const auto u = static_cast<double>(x), v = static_cast<double>(y);
      Colour colour = {};
      double light = 0;
      for (const Wave& wave : ground) light += wave.at(u, v);
      for (std::size_t c = 0; c < 3; ++c) colour[c] = std::lerp(top[c], bottom[c], v / height) + light;
      for (const DrawnShape& shape : shapes) {
        const double cover = std::clamp(0.5 - shape.distance(u, v), 0.0, 1.0);  // a border of one pixel
        if (cover == 0) continue;
        const double shade = shape.texture.at(u, v) + shape.relief.at(u, v);
        for (std::size_t c = 0; c < 3; ++c) colour[c] = std::lerp(colour[c], shape.colour[c] + shade, cover);
      }
      for (const double value : colour) {
        image.values.push_back(static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0))));
      }
    }
  }
  return image;
}

std::vector<ImagePair> drawn_pairs(uint64_t seed, uint64_t stream, int64_t images, const PhotographSet& settings) {
  std::vector<ImagePair> pairs(static_cast<std::size_t>(images));
  for_row_stretches(images, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      pairs[static_cast<std::size_t>(i)] = degraded_pair(
          "drawn " + std::to_string(i), planes_of(draw_photograph(seed, stream, i), settings.colours), settings);
    }
  });
  return pairs;
}

Dataset make_drawn_photographs(const DataConfig& config) {
  const auto settings = settings_for<PhotographSet>(config);
  const int64_t train = synthetic_rows(config.synthetic_train, kTrainImages, "synthetic_train");
  const int64_t test = synthetic_rows(config.synthetic_test, kTestImages, "synthetic_test");
  Dataset set = photograph_dataset(drawn_pairs(config.seed, kDrawnTrainStream, train, settings),
                                   drawn_pairs(config.seed, kDrawnTestStream, test, settings), config);
  set.name = "drawn_photographs";
  set.source = "synthetic, seed " + std::to_string(config.seed);
  return set;
}

}  // namespace

DatasetRow drawn_photographs_row() {
  DatasetRow row;
  row.name = "drawn_photographs";
  row.description =
      "drawn by the program: pictures of 96 to 180 pixels a side with edges and texture, for task super_resolution, 24 "
      "to train on and 5 to evaluate on";
  row.origin = Origin::synthetic;
  row.make = make_drawn_photographs;
  row.learnt = "image";
  row.keys = [] { return photograph_keys({}); };
  row.check = check_photographs;
  return row;
}

}  // namespace gpunn::data
