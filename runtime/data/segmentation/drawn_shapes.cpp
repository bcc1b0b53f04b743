// Shapes on textured grounds with their label maps, for task segmentation. Colours say nothing about classes, so that a
// model has to see shapes. Only operations that IEEE 754 rounds exactly are used: the same bits everywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "common/parallel.hpp"
#include "data/images/sized_images.hpp"
#include "data/registry.hpp"
#include "data/rows/room.hpp"
#include "data/segmentation/label_map.hpp"
#include "data/segmentation/map_classes.hpp"
#include "data/synthetic/philox_source.hpp"
#include "data/synthetic/synthetic.hpp"

namespace gpunn::data {

namespace {

constexpr int64_t kTrainPictures = 2000, kTestPictures = 400, kPictureSide = 64;
constexpr uint64_t kBlocksOfPicture = uint64_t{1} << 24;  // of random words
constexpr uint32_t kFewestShapes = 2, kMostShapes = 5;
constexpr double kOutline = 1;  // pixels on each side of an edge that are ignored
constexpr std::array<const char*, 5> kShapeNames = {"background", "circle", "square", "triangle", "ring"};

using Paint = std::array<double, 3>;

Paint random_paint(PhiloxSource& random) {
  return {random.uniform(20, 235), random.uniform(20, 235), random.uniform(20, 235)};
}

// Brightness that varies smoothly: random values at the corners of cells, and their bilinear means between them.
class Texture {
 public:
  Texture(PhiloxSource& random, int64_t height, int64_t width)
      : cell_(4 + static_cast<int64_t>(random.below(13))), columns_(width / cell_ + 2) {
    const double strength = random.uniform(5, 40);
    values_.resize(static_cast<std::size_t>((height / cell_ + 2) * columns_));
    for (double& value : values_) value = random.uniform(-strength, strength);
  }
  double at(int64_t y, int64_t x) const {
    const auto part = [&](int64_t i) { return static_cast<double>(i % cell_) / static_cast<double>(cell_); };
    const auto corner = static_cast<std::size_t>(y / cell_ * columns_ + x / cell_);
    const std::size_t below = corner + static_cast<std::size_t>(columns_);
    const double top = values_[corner] + part(x) * (values_[corner + 1] - values_[corner]);
    const double bottom = values_[below] + part(x) * (values_[below + 1] - values_[below]);
    return top + part(y) * (bottom - top);
  }

 private:
  int64_t cell_, columns_;
  std::vector<double> values_;
};

struct Figure {
  uint8_t id = 1;                 // of its class
  double x = 0, y = 0, size = 0;  // its centre, and its radius in pixels
  double across = 1, down = 0;    // its direction, of length 1
  Paint paint = {};

  // From the edge in pixels, negative inside.
  double distance(double u, double v) const {
    const double right = u - x, below = v - y, radius = std::sqrt(right * right + below * below);
    const double a = right * across + below * down, b = below * across - right * down;
    constexpr double kSine = 0.86602540378443865;  // of 60 degrees
    switch (id) {
      case 1:
        return radius - size;
      case 2:
        return std::max(std::abs(a), std::abs(b)) - 0.8 * size;
      case 3:
        return std::max(-b, 0.5 * b + kSine * std::abs(a)) - 0.5 * size;
      default:
        return std::abs(radius - 0.75 * size) - 0.22 * size;
    }
  }
};

// Not too near the ground's colour to be seen.
Figure random_figure(PhiloxSource& random, double height, double width, const Paint& ground) {
  constexpr double kLeastContrast = 120;  // the sum over three channels
  Figure figure;
  figure.id = static_cast<uint8_t>(1 + random.below(static_cast<uint32_t>(kShapeNames.size()) - 1));
  const double side = std::min(height, width);
  figure.size = random.uniform(0.12, 0.28) * side;
  figure.x = random.uniform(0, width);
  figure.y = random.uniform(0, height);
  double length = 0;
  while (length < 0.1 || length > 1) {
    figure.across = random.uniform(-1, 1);
    figure.down = random.uniform(-1, 1);
    length = std::sqrt(figure.across * figure.across + figure.down * figure.down);
  }
  figure.across /= length;
  figure.down /= length;
  double contrast = 0;
  while (contrast < kLeastContrast) {
    figure.paint = random_paint(random);
    contrast = 0;
    for (std::size_t c = 0; c < 3; ++c) contrast += std::abs(figure.paint[c] - ground[c]);
  }
  return figure;
}

// Draws a picture, channel by channel, and its map. Later figures cover earlier ones.
void draw_shapes(PhiloxSource& random, int64_t height, int64_t width, uint8_t* picture, uint8_t* map) {
  const Paint ground = random_paint(random);
  const Texture texture(random, height, width);
  const double noise = random.uniform(2, 20);
  std::vector<Figure> figures;
  const uint32_t count = kFewestShapes + random.below(kMostShapes - kFewestShapes + 1);
  for (uint32_t i = 0; i < count; ++i) {
    figures.push_back(random_figure(random, static_cast<double>(height), static_cast<double>(width), ground));
  }
  const int64_t pixels = height * width;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const double u = static_cast<double>(x) + 0.5, v = static_cast<double>(y) + 0.5;
      Paint colour = ground;
      uint8_t id = 0;
      for (const Figure& figure : figures) {
        const double distance = figure.distance(u, v), cover = std::clamp(0.5 - distance, 0.0, 1.0);
        for (std::size_t c = 0; c < 3; ++c) colour[c] += cover * (figure.paint[c] - colour[c]);
        if (distance < kOutline) id = distance > -kOutline ? kIgnoredPixel : figure.id;
      }
      const double light = texture.at(y, x) + random.uniform(-noise, noise);
      for (std::size_t c = 0; c < 3; ++c) {
        picture[static_cast<int64_t>(c) * pixels + y * width + x] =
            static_cast<uint8_t>(std::clamp(colour[c] + light, 0.0, 255.0));
      }
      map[y * width + x] = id;
    }
  }
}

Split draw_split(uint64_t seed, uint64_t stream, int64_t images, int64_t height, int64_t width) {
  Split split;
  split.samples = {DType::u8, {images, 3, height, width}};
  make_room(split);
  FieldValues& maps = split.fields["map"];
  maps.type = {DType::u8, {images, height, width}};
  maps.values.resize(maps.type.bytes());
  auto* const pictures = reinterpret_cast<uint8_t*>(split.values.data());
  auto* const ids = reinterpret_cast<uint8_t*>(maps.values.data());
  const int64_t pixels = height * width;
  for_row_stretches(images, 8, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      PhiloxSource random(seed, stream, static_cast<uint64_t>(i) * kBlocksOfPicture);
      draw_shapes(random, height, width, pictures + 3 * i * pixels, ids + i * pixels);
    }
  });
  return split;
}

Dataset make_drawn_shapes(const DataConfig& config) {
  const std::vector<int64_t> given = settings_for<SegmentationSet>(config).image_size;
  const int64_t height = given.empty() ? kPictureSide : given[0], width = given.empty() ? kPictureSide : given[1];
  const int64_t train = synthetic_rows(config.synthetic_train, kTrainPictures, "synthetic_train");
  const int64_t test = synthetic_rows(config.synthetic_test, kTestPictures, "synthetic_test");
  Dataset set;
  set.name = "drawn_shapes";
  set.source = "synthetic, seed " + std::to_string(config.seed);
  set.train = draw_split(config.seed, kShapesTrainStream, train, height, width);
  set.test = draw_split(config.seed, kShapesTestStream, test, height, width);
  set.fields.target() = map_field({kShapeNames.begin(), kShapeNames.end()}, height, width);
  return set;
}

}  // namespace

DatasetRow drawn_shapes_row() {
  DatasetRow row;
  row.name = "drawn_shapes";
  row.description =
      "drawn by the program: circles, squares, triangles and rings on textured grounds, 64x64, with label maps of 5 "
      "classes, for task segmentation, 2000 to train on and 400 to evaluate on";
  row.origin = Origin::synthetic;
  row.make = make_drawn_shapes;
  row.learnt = "label_map";
  row.keys = [] { return keys_of_set<SegmentationSet>(image_size_key()); };
  row.check = [](const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
    check_sized_images(settings_for<SegmentationSet>(config), given, found);
  };
  return row;
}

}  // namespace gpunn::data
