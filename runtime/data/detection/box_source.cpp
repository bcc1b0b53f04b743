#include "data/detection/box_source.hpp"

#include <gpunn/data.hpp>
#include <gpunn/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include <zlib.h>

#include "data/parallel.hpp"
#include "data/philox_source.hpp"

namespace gpunn::data {

using tasks::Box;
using tasks::TrueBox;

namespace {

constexpr double kMosaicScale = 0.7;                        // of the images of a mosaic: a quarter shows most of one
constexpr double kLeastCutShare = 0.25, kLeastCutSide = 2;  // of a box that is cut
constexpr uint64_t kBlocksOfSample = 16;                    // of random words

uint32_t crc_of(const std::vector<BoxedImage>& images) {
  uLong crc = 0;
  for (const BoxedImage& image : images) {
    crc = crc32_z(crc, image.image.values.data(), image.image.values.size());
    for (const TrueBox& object : image.objects) {
      const std::array<double, 5> values = {object.box.left, object.box.top, object.box.right, object.box.bottom,
                                            static_cast<double>(object.category)};
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(values.data()), sizeof(values));
    }
  }
  return static_cast<uint32_t>(crc);
}

// Brightness, then contrast about the mean, then distance from grey, each times 1 - strength to 1 + strength.
void vary_colour(Image& image, double strength, PhiloxSource& random) {
  if (strength == 0) return;
  const double light = 1 + random.uniform(-strength, strength), contrast = 1 + random.uniform(-strength, strength);
  const double saturation = 1 + random.uniform(-strength, strength);
  double sum = 0;
  for (const uint8_t value : image.values) sum += value;
  const double mean = light * sum / static_cast<double>(image.values.size());
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t i = 0; i < image.values.size(); i += channels) {
    std::array<double, 3> pixel = {};
    double grey = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      pixel[c] = mean + contrast * (light * image.values[i + c] - mean);
      grey += pixel[c] / static_cast<double>(channels);
    }
    for (std::size_t c = 0; c < channels; ++c) {
      const double value = grey + saturation * (pixel[c] - grey);
      image.values[i + c] = static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
    }
  }
}

}  // namespace

Box Placement::of(const Box& box, int64_t width) const {
  const auto w = static_cast<double>(width);
  const double left = flip ? w - box.right : box.left, right = flip ? w - box.left : box.right;
  return {left * scale + x, box.top * scale + y, right * scale + x, box.bottom * scale + y};
}

Canvas::Canvas(int64_t height, int64_t width, int64_t channels)
    : image_{height, width, channels,
             std::vector<uint8_t>(static_cast<std::size_t>(height * width * channels), kGreyAround)} {}

void Canvas::draw(const BoxedImage& boxed, const Placement& place, const Region& region) {
  const Image& from = boxed.image;
  const auto clipped = [](double value, int64_t low, int64_t high) {
    return std::clamp(static_cast<int64_t>(std::lround(value)), low, high);
  };
  const double h = static_cast<double>(from.height) * place.scale, w = static_cast<double>(from.width) * place.scale;
  const int64_t top = clipped(place.y, region.top, region.bottom), left = clipped(place.x, region.left, region.right);
  const int64_t bottom = clipped(place.y + h, region.top, region.bottom);
  const int64_t right = clipped(place.x + w, region.left, region.right);
  const auto channels = static_cast<std::size_t>(from.channels);
  const auto neighbours = [](double at, int64_t size) {
    const double place_of = std::clamp(at, 0.0, static_cast<double>(size - 1));
    const auto first = static_cast<int64_t>(place_of);
    return std::pair(first, place_of - static_cast<double>(first));
  };
  for (int64_t y = top; y < bottom; ++y) {
    const auto [row, below] = neighbours((static_cast<double>(y) + 0.5 - place.y) / place.scale - 0.5, from.height);
    const int64_t next_row = std::min(row + 1, from.height - 1);
    for (int64_t x = left; x < right; ++x) {
      auto [column, beside] = neighbours((static_cast<double>(x) + 0.5 - place.x) / place.scale - 0.5, from.width);
      int64_t next_column = std::min(column + 1, from.width - 1);
      if (place.flip) {
        column = from.width - 1 - column;
        next_column = from.width - 1 - next_column;
      }
      const auto at = [&](int64_t i, int64_t j, std::size_t c) {
        return static_cast<double>(from.values[static_cast<std::size_t>(i * from.width + j) * channels + c]);
      };
      uint8_t* const to = image_.values.data() + static_cast<std::size_t>(y * image_.width + x) * channels;
      for (std::size_t c = 0; c < channels; ++c) {
        const double above = std::lerp(at(row, column, c), at(row, next_column, c), beside);
        const double under = std::lerp(at(next_row, column, c), at(next_row, next_column, c), beside);
        to[c] = static_cast<uint8_t>(std::lround(std::lerp(above, under, below)));
      }
    }
  }
  const Box bounds{static_cast<double>(region.left), static_cast<double>(region.top), static_cast<double>(region.right),
                   static_cast<double>(region.bottom)};
  for (TrueBox object : boxed.objects) {
    const Box whole = place.of(object.box, from.width), left_of_it = tasks::intersection(whole, bounds);
    if (left_of_it.width() < kLeastCutSide || left_of_it.height() < kLeastCutSide) continue;
    if (tasks::area_of(left_of_it) < kLeastCutShare * tasks::area_of(whole)) continue;
    object.box = left_of_it;
    objects_.push_back(object);
  }
}

void write_boxes(std::span<const TrueBox> objects, double scale, std::span<float> room) {
  for (std::size_t i = 0; i * kBoxNumbers < room.size(); ++i) {
    float* const to = room.data() + i * kBoxNumbers;
    std::fill_n(to, kBoxNumbers, 0.0F);
    to[4] = -1;
    to[6] = static_cast<float>(scale);
    if (i >= objects.size()) continue;
    const TrueBox& object = objects[i];
    to[0] = static_cast<float>(object.box.left);
    to[1] = static_cast<float>(object.box.top);
    to[2] = static_cast<float>(object.box.right);
    to[3] = static_cast<float>(object.box.bottom);
    to[4] = static_cast<float>(object.category);
    to[5] = object.difficult || object.crowd ? 1.0F : 0.0F;
  }
}

BoxSource::BoxSource(std::vector<BoxedImage> images, BoxSet settings, uint64_t seed, bool shuffle)
    : images_(std::move(images)),
      settings_(std::move(settings)),
      seed_(seed),
      shuffle_(shuffle),
      digest_(crc_of(images_)) {
  // What counts for nothing in an evaluation is not learnt.
  for (BoxedImage& image : images_) {
    std::erase_if(image.objects, [](const TrueBox& object) { return object.difficult || object.crowd; });
  }
}

const BoxedImage& BoxSource::image_of(uint64_t sample) const {
  const auto count = static_cast<uint32_t>(images_.size());
  const auto place = static_cast<uint32_t>(sample % count);
  if (!shuffle_) return images_[place];
  return images_[gpunn_random_permute(seed_, kBoxOrderStream, sample / count, count, place)];
}

Canvas BoxSource::sample_of(uint64_t number) const {
  PhiloxSource random(seed_, kBoxStream, number * kBlocksOfSample);
  const int64_t height = settings_.image_size[0], width = settings_.image_size[1];
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  Canvas canvas(height, width, settings_.channels);
  const auto zoom = [&] {
    if (settings_.zoom.empty()) return 1.0;
    return settings_.zoom[0] * std::pow(settings_.zoom[1] / settings_.zoom[0], random.uniform(0, 1));
  };
  const auto flips = [&] { return random.uniform(0, 1) < settings_.flip; };
  if (random.uniform(0, 1) < settings_.mosaic) {
    const double middle_x = w * random.uniform(0.3, 0.7), middle_y = h * random.uniform(0.3, 0.7);
    const auto x = static_cast<int64_t>(middle_x), y = static_cast<int64_t>(middle_y);
    const std::array<Region, 4> quarters = {
        Region{0, 0, y, x}, {0, x, y, width}, {y, 0, height, x}, {y, x, height, width}};
    for (std::size_t i = 0; i < quarters.size(); ++i) {
      const BoxedImage& boxed =
          i == 0 ? image_of(number) : images_[random.below(static_cast<uint32_t>(images_.size()))];
      Placement place{.scale = fit_inside_scale(boxed.image, height, width) * zoom() * kMosaicScale};
      place.flip = flips();
      // Each touches the middle with a corner.
      place.x = i % 2 == 0 ? static_cast<double>(x) - static_cast<double>(boxed.image.width) * place.scale
                           : static_cast<double>(x);
      place.y = i < 2 ? static_cast<double>(y) - static_cast<double>(boxed.image.height) * place.scale
                      : static_cast<double>(y);
      canvas.draw(boxed, place, quarters[i]);
    }
  } else {
    const BoxedImage& boxed = image_of(number);
    Placement place{.scale = fit_inside_scale(boxed.image, height, width) * zoom()};
    place.flip = flips();
    // Anywhere that leaves no more of the canvas empty than must be.
    const auto moved = [&](double room) { return random.uniform(std::min(room, 0.0), std::max(room, 0.0)); };
    if (!settings_.zoom.empty()) {
      place.x = moved(w - static_cast<double>(boxed.image.width) * place.scale);
      place.y = moved(h - static_cast<double>(boxed.image.height) * place.scale);
    }
    canvas.draw(boxed, place, canvas.whole());
  }
  vary_colour(canvas.image(), settings_.colour, random);
  return canvas;
}

int64_t BoxSource::read(int64_t step, std::span<std::byte> samples, std::span<std::byte> targets) {
  const auto sample_bytes =
      static_cast<std::size_t>(settings_.channels * settings_.image_size[0] * settings_.image_size[1]);
  const auto numbers = static_cast<std::size_t>(settings_.most_boxes * kBoxNumbers);
  const auto rows = static_cast<int64_t>(samples.size() / sample_bytes);
  for_row_stretches(rows, 1, [&](int64_t first, int64_t last) {
    std::vector<float> boxes(numbers);
    for (int64_t row = first; row < last; ++row) {
      const Canvas canvas = sample_of(static_cast<uint64_t>(step * rows + row));
      const auto place = static_cast<std::size_t>(row);
      write_planes(canvas.image(), samples.data() + place * sample_bytes);
      write_boxes(canvas.objects(), 1, boxes);
      std::memcpy(targets.data() + place * numbers * sizeof(float), boxes.data(), numbers * sizeof(float));
    }
  });
  return rows;
}

}  // namespace gpunn::data
