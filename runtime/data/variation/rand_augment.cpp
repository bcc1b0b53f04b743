// RandAugment and TrivialAugment: which change is drawn, and how strong it is.
#include <array>
#include <cmath>

#include "data/variation/picture_changes.hpp"
#include "data/variation/sample_variation.hpp"

namespace gpunn::data {

namespace {

enum class Change {
  none,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  colour,
  contrast,
  sharpness,
  posterize,
  solarize,
  stretch_contrast,
  equalize,
};
constexpr uint32_t kChanges = 14;
constexpr int64_t kMostMagnitude = 30;

// The strongest of each kind of change.
struct Space {
  double shear = 0;
  double translate_x = 0, translate_y = 0;  // pixels
  double degrees = 0, enhance = 0, bits = 0;
};

void apply(Image& image, Change change, int64_t magnitude, const Space& space, PhiloxSource& random) {
  const double share = static_cast<double>(magnitude) / static_cast<double>(kMostMagnitude);
  const double sign = random.below(2) == 0 ? 1 : -1;
  const auto moved = [&](double most) { return std::trunc(sign * share * most); };
  switch (change) {
    case Change::none:
      return;
    case Change::shear_x:
      return map_pixels(image, {1, sign * share * space.shear, 0, 0, 1, 0});
    case Change::shear_y:
      return map_pixels(image, {1, 0, 0, sign * share * space.shear, 1, 0});
    case Change::translate_x:
      return map_pixels(image, {1, 0, moved(space.translate_x), 0, 1, 0});
    case Change::translate_y:
      return map_pixels(image, {1, 0, 0, 0, 1, moved(space.translate_y)});
    case Change::rotate:
      return rotate(image, sign * share * space.degrees);
    case Change::brightness:
      return change_brightness(image, 1 + sign * share * space.enhance);
    case Change::colour:
      return change_colour(image, 1 + sign * share * space.enhance);
    case Change::contrast:
      return change_contrast(image, 1 + sign * share * space.enhance);
    case Change::sharpness:
      return change_sharpness(image, 1 + sign * share * space.enhance);
    case Change::posterize:
      return posterize(image, 8 - static_cast<int>(std::nearbyint(share * space.bits)));
    case Change::solarize:
      return solarize(image, 255 * (1 - share));
    case Change::stretch_contrast:
      return stretch_contrast(image);
    case Change::equalize:
      return equalize(image);
  }
}

}  // namespace

void rand_augment(Image& image, int64_t ops, int64_t magnitude, PhiloxSource& random) {
  constexpr double kTranslated = 150.0 / 331.0;  // of a side
  const Space space{.shear = 0.3,
                    .translate_x = kTranslated * static_cast<double>(image.width),
                    .translate_y = kTranslated * static_cast<double>(image.height),
                    .degrees = 30,
                    .enhance = 0.9,
                    .bits = 4};
  for (int64_t i = 0; i < ops; ++i) {
    const auto change = static_cast<Change>(random.below(kChanges));
    apply(image, change, magnitude, space, random);
  }
}

void trivial_augment(Image& image, PhiloxSource& random) {
  const Space space{.shear = 0.99, .translate_x = 32, .translate_y = 32, .degrees = 135, .enhance = 0.99, .bits = 6};
  const auto change = static_cast<Change>(random.below(kChanges));
  apply(image, change, random.below(kMostMagnitude + 1), space, random);
}

}  // namespace gpunn::data
