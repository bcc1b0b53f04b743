#include "data/detection/box_source.hpp"

#include <gpunn/data.hpp>
#include <gpunn/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "common/parallel.hpp"
#include "data/synthetic/philox_source.hpp"

namespace gpunn::data {

using fields::Box;
using fields::TrueBox;

namespace {

constexpr double kMosaicScale = 0.7;                        // of the images of a mosaic: a quarter shows most of one
constexpr double kLeastCutShare = 0.25, kLeastCutSide = 2;  // of a box that is cut
constexpr uint64_t kBlocksOfSample = 16;                    // of random words

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

double Placement::height_of(const Image& image) const {
  return static_cast<double>(transpose ? image.width : image.height) * scale / stretch;
}

double Placement::width_of(const Image& image) const {
  return static_cast<double>(transpose ? image.height : image.width) * scale * stretch;
}

Box Placement::of(const Box& box, const Image& image) const {
  const double by_x = scale * stretch, by_y = scale / stretch;
  Box placed = transpose ? Box{box.top * by_x, box.left * by_y, box.bottom * by_x, box.right * by_y}
                         : Box{box.left * by_x, box.top * by_y, box.right * by_x, box.bottom * by_y};
  if (flip) placed = {width_of(image) - placed.right, placed.top, width_of(image) - placed.left, placed.bottom};
  if (vertical_flip) {
    placed = {placed.left, height_of(image) - placed.bottom, placed.right, height_of(image) - placed.top};
  }
  return {placed.left + x, placed.top + y, placed.right + x, placed.bottom + y};
}

Canvas::Canvas(int64_t height, int64_t width, int64_t channels)
    : image_{height, width, channels,
             std::vector<uint8_t>(static_cast<std::size_t>(height * width * channels), kGreyAround)} {}

void Canvas::draw(const BoxedImage& boxed, const Placement& place, const Region& region) {
  const Image& from = boxed.image;
  const auto clipped = [](double value, int64_t low, int64_t high) {
    return std::clamp(static_cast<int64_t>(std::lround(value)), low, high);
  };
  const int64_t rows = place.transpose ? from.width : from.height;
  const int64_t columns = place.transpose ? from.height : from.width;
  const double by_x = place.scale * place.stretch, by_y = place.scale / place.stretch;
  const int64_t top = clipped(place.y, region.top, region.bottom), left = clipped(place.x, region.left, region.right);
  const int64_t bottom = clipped(place.y + place.height_of(from), region.top, region.bottom);
  const int64_t right = clipped(place.x + place.width_of(from), region.left, region.right);
  const auto channels = static_cast<std::size_t>(from.channels);
  // The two pixels of a row or column that a place lies between, counted from its other end where it is mirrored.
  struct Neighbours {
    int64_t first, second;
    double share;  // of the second
  };
  const auto neighbours = [](double at, int64_t size, bool mirrored) {
    const double place_of = std::clamp(at, 0.0, static_cast<double>(size - 1));
    const auto first = static_cast<int64_t>(place_of);
    const int64_t second = std::min(first + 1, size - 1);
    const double share = place_of - static_cast<double>(first);
    return mirrored ? Neighbours{size - 1 - first, size - 1 - second, share} : Neighbours{first, second, share};
  };
  for (int64_t y = top; y < bottom; ++y) {
    const Neighbours row = neighbours((static_cast<double>(y) + 0.5 - place.y) / by_y - 0.5, rows, place.vertical_flip);
    for (int64_t x = left; x < right; ++x) {
      const Neighbours column = neighbours((static_cast<double>(x) + 0.5 - place.x) / by_x - 0.5, columns, place.flip);
      const auto at = [&](int64_t i, int64_t j, std::size_t c) {
        const int64_t pixel = place.transpose ? j * from.width + i : i * from.width + j;
        return static_cast<double>(from.values[static_cast<std::size_t>(pixel) * channels + c]);
      };
      uint8_t* const to = image_.values.data() + static_cast<std::size_t>(y * image_.width + x) * channels;
      for (std::size_t c = 0; c < channels; ++c) {
        const double above = std::lerp(at(row.first, column.first, c), at(row.first, column.second, c), column.share);
        const double under = std::lerp(at(row.second, column.first, c), at(row.second, column.second, c), column.share);
        to[c] = static_cast<uint8_t>(std::lround(std::lerp(above, under, row.share)));
      }
    }
  }
  const Box bounds{static_cast<double>(region.left), static_cast<double>(region.top), static_cast<double>(region.right),
                   static_cast<double>(region.bottom)};
  for (TrueBox object : boxed.objects) {
    if (object.difficult || object.crowd) continue;  // what counts for nothing in an evaluation is not learnt
    const Box whole = place.of(object.box, from), left_of_it = fields::intersection(whole, bounds);
    if (left_of_it.width() < kLeastCutSide || left_of_it.height() < kLeastCutSide) continue;
    if (fields::area_of(left_of_it) < kLeastCutShare * fields::area_of(whole)) continue;
    object.box = left_of_it;
    objects_.push_back(object);
  }
}

void write_boxes(std::span<const TrueBox> objects, std::span<float> room) {
  for (std::size_t i = 0; i * kBoxNumbers < room.size(); ++i) {
    float* const to = room.data() + i * kBoxNumbers;
    std::fill_n(to, kBoxNumbers, 0.0F);
    to[4] = -1;
    if (i >= objects.size()) continue;
    const TrueBox& object = objects[i];
    to[0] = static_cast<float>(object.box.left);
    to[1] = static_cast<float>(object.box.top);
    to[2] = static_cast<float>(object.box.right);
    to[3] = static_cast<float>(object.box.bottom);
    to[4] = static_cast<float>(object.category);
  }
}

BoxSource::BoxSource(std::shared_ptr<const BoxImages> images, BoxSet settings, uint64_t seed, bool shuffle)
    : images_(std::move(images)), settings_(std::move(settings)), seed_(seed), shuffle_(shuffle) {}

std::shared_ptr<const BoxedImage> BoxSource::image_of(uint64_t sample) const {
  const auto count = static_cast<uint32_t>(images_->count());
  const auto place = static_cast<uint32_t>(sample % count);
  if (!shuffle_) return images_->image(place);
  return images_->image(gpunn_random_permute(seed_, kBoxOrderStream, sample / count, count, place));
}

Placement BoxSource::placement_of(const Image& image, double scale, PhiloxSource& random) const {
  // A value is drawn where something depends on it, so that a key that is left out changes no sample.
  const auto between = [&random](double least, double most) {
    return least * std::pow(most / least, random.uniform(0, 1));
  };
  const auto happens = [&random](double share) { return share > 0 && random.uniform(0, 1) < share; };
  Placement place;
  if (!settings_.zoom.empty()) place.scale = between(settings_.zoom[0], settings_.zoom[1]);
  if (settings_.stretch > 1) {
    place.stretch = between(1 / std::sqrt(settings_.stretch), std::sqrt(settings_.stretch));
  }
  place.flip = random.uniform(0, 1) < settings_.flip;
  place.vertical_flip = happens(settings_.vertical_flip);
  place.transpose = happens(settings_.transpose);
  const auto rows = static_cast<double>(place.transpose ? image.width : image.height);
  const auto columns = static_cast<double>(place.transpose ? image.height : image.width);
  const auto height = static_cast<double>(settings_.image_size[0]),
             width = static_cast<double>(settings_.image_size[1]);
  place.scale *= scale * std::min(height / rows, width / columns);
  return place;
}

Canvas BoxSource::sample_of(uint64_t number, bool mosaics) const {
  PhiloxSource random(seed_, kBoxStream, number * kBlocksOfSample);
  const int64_t height = settings_.image_size[0], width = settings_.image_size[1];
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  Canvas canvas(height, width, settings_.channels);
  if (random.uniform(0, 1) < (mosaics ? settings_.mosaic : 0)) {
    const double middle_x = w * random.uniform(0.3, 0.7), middle_y = h * random.uniform(0.3, 0.7);
    const auto x = static_cast<int64_t>(middle_x), y = static_cast<int64_t>(middle_y);
    const std::array<Region, 4> quarters = {
        Region{0, 0, y, x}, {0, x, y, width}, {y, 0, height, x}, {y, x, height, width}};
    for (std::size_t i = 0; i < quarters.size(); ++i) {
      const std::shared_ptr<const BoxedImage> image =
          i == 0 ? image_of(number) : images_->image(random.below(static_cast<uint32_t>(images_->count())));
      const BoxedImage& boxed = *image;
      Placement place = placement_of(boxed.image, kMosaicScale, random);
      // Each touches the middle with a corner.
      place.x = static_cast<double>(x) - (i % 2 == 0 ? place.width_of(boxed.image) : 0);
      place.y = static_cast<double>(y) - (i < 2 ? place.height_of(boxed.image) : 0);
      canvas.draw(boxed, place, quarters[i]);
    }
  } else {
    const std::shared_ptr<const BoxedImage> image = image_of(number);
    const BoxedImage& boxed = *image;
    Placement place = placement_of(boxed.image, 1, random);
    // Anywhere that leaves no more of the canvas empty than must be.
    const auto moved = [&](double room) { return random.uniform(std::min(room, 0.0), std::max(room, 0.0)); };
    if (!settings_.zoom.empty()) {
      place.x = moved(w - place.width_of(boxed.image));
      place.y = moved(h - place.height_of(boxed.image));
    }
    canvas.draw(boxed, place, canvas.whole());
  }
  vary_colour(canvas.image(), settings_.colour, random);
  return canvas;
}

int64_t BoxSource::read(int64_t step, const BatchRoom& room) {
  const std::span<std::byte> samples = room.samples, targets = room.fields.front();
  const auto sample_bytes =
      static_cast<std::size_t>(settings_.channels * settings_.image_size[0] * settings_.image_size[1]);
  const auto numbers = static_cast<std::size_t>(settings_.most_boxes * kBoxNumbers);
  const auto rows = static_cast<int64_t>(samples.size() / sample_bytes);
  const int64_t epoch = settings_.epoch_samples > 0 ? settings_.epoch_samples : images_->count();
  const bool mosaics =
      settings_.mosaic_epochs == 0 || step / std::max<int64_t>(1, epoch / rows) < settings_.mosaic_epochs;
  for_row_stretches(rows, 1, [&](int64_t first, int64_t last) {
    std::vector<float> boxes(numbers);
    for (int64_t row = first; row < last; ++row) {
      const Canvas canvas = sample_of(static_cast<uint64_t>(step * rows + row), mosaics);
      const auto place = static_cast<std::size_t>(row);
      write_planes(canvas.image(), samples.data() + place * sample_bytes);
      write_boxes(canvas.objects(), boxes);
      std::memcpy(targets.data() + place * numbers * sizeof(float), boxes.data(), numbers * sizeof(float));
    }
  });
  return rows;
}

}  // namespace gpunn::data
