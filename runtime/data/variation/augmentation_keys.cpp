#include "data/variation/augmentation_keys.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "config/key_builders.hpp"

namespace gpunn::data {

namespace {

using A = AugmentationConfig;

constexpr double kLargestImage = 16384;

// The least and the most of something.
template <class Range>
config::KeyOf<A> range_key(const char* name, std::vector<double> A::*member, const Range& range, const char* help) {
  config::KeyOf<A> key = config::numbers(name, member, range, help);
  key.count = 2;
  return key;
}

}  // namespace

std::vector<config::KeyOf<AugmentationConfig>> augmentation_keys() {
  using namespace config;
  return {
      pixels("crop", &A::crop, between(0, kLargestImage), -1,
             "Images are padded by this many pixels on each side, or by [rows, columns], and cut to their size at a "
             "random place."),
      pixels("translate", &A::translate, between(0, kLargestImage), -1,
             "The same, written as a shift: images move by up to this many pixels up, down and to both sides."),
      number("flip", &A::flip, between(0, 1), "The share of the images that are mirrored left to right."),
      number("rotate", &A::rotate, between(0, 180),
             "Images are rotated by up to this many degrees in both directions."),
      number("translate_share", &A::translate_share, between(0, 1),
             "Images move by up to this share of their rows and columns, by parts of a pixel too."),
      optional(range_key("scale", &A::scale, above_up_to(0, 100),
                         "Images are scaled about their centre: the smallest and the largest factor, as [0.9, 1.1].")),
      optional(range_key("zoom", &A::zoom, between(1, 100),
                         "A part of each image is cut out at a random place and scaled to the image's size: the "
                         "smallest and the largest factor, such as [1, 2].")),
      number("brightness", &A::brightness, between(0, 1),
             "Colours are multiplied by a random number that differs from 1 by at most this."),
      number("contrast", &A::contrast, between(0, 1), "The same for their distance from the image's mean grey."),
      number("saturation", &A::saturation, between(0, 1), "The same for their distance from the pixel's grey."),
      pixels("erase", &A::erase, between(1, kLargestImage), -1,
             "A rectangle of this many pixels a side, or of [rows, columns], is blanked at a random place."),
      number("erase_share", &A::erase_share, between(0, 1), "The share of the images that have a blanked rectangle."),
      number("mixup", &A::mixup, between(0, 1000),
             "The alpha of mixup: each sample and its target are mixed with another's, in shares drawn from "
             "Beta(alpha, alpha) at each step; 0: off."),
      number("cutmix", &A::cutmix, between(0, 1000),
             "The alpha of CutMix: a rectangle of each image is taken from another, and targets are mixed by its share "
             "of the area, which is drawn as mixup's; 0: off. With `mixup` too, each step draws one of the two."),
      optional(range_key("resized_crop", &A::resized_crop, above_up_to(0, 1),
                         "A part of the image is cut out and scaled to the sample's size: the smallest and the largest "
                         "share of the area, as [0.08, 1] (random-resized-crop).")),
      range_key("resized_crop_ratio", &A::resized_crop_ratio, above_up_to(0, 100),
                "The smallest and the largest width by height of that part."),
      integer("rand_augment", &A::rand_augment, between(0, 16),
              "RandAugment: number of changes to each image; 0: off."),
      integer("rand_augment_magnitude", &A::rand_augment_magnitude, between(0, 30),
              "Strength of each change, 30 at most."),
      boolean("trivial_augment", &A::trivial_augment, "TrivialAugment: one change to each image, of random strength."),
  };
}

void check_augmentation(const AugmentationConfig& config, const config::GivenKeys& given, config::Diagnostics& found) {
  const auto check_pixels = [&](const std::string& key, const std::vector<int64_t>& sizes) {
    const bool whole = std::ranges::none_of(sizes, [](int64_t size) { return size < 0; });
    if (!given.sound(key) || (sizes.size() <= 2 && whole)) return;
    found.add(given.place(key), key + ": expected one integer or two, [rows, columns]");
  };
  check_pixels("augmentation.crop", config.crop);
  check_pixels("augmentation.translate", config.translate);
  check_pixels("augmentation.erase", config.erase);
  const auto check_range = [&](const std::string& key, const std::vector<double>& range) {
    if (!given.sound(key) || range.size() != 2 || range[0] <= range[1]) return;
    found.add(given.place(key), key + ": expected the least first, [least, most]");
  };
  check_range("augmentation.scale", config.scale);
  check_range("augmentation.zoom", config.zoom);
  check_range("augmentation.resized_crop", config.resized_crop);
  check_range("augmentation.resized_crop_ratio", config.resized_crop_ratio);
  if (config.rand_augment > 0 && config.trivial_augment) {
    found.add(given.place("augmentation.trivial_augment"),
              "augmentation.rand_augment and augmentation.trivial_augment are two ways to draw changes; give one");
  }
  if (!config.crop.empty() && !config.translate.empty()) {
    found.add(given.place("augmentation.translate"),
              "augmentation.crop and augmentation.translate are two names of one thing; give one");
  }
}

}  // namespace gpunn::data
