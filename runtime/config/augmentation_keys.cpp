#include <cmath>

#include "config/key_builders.hpp"

namespace gpunn::config {

namespace {

using A = AugmentationConfig;

constexpr double kLargestImage = 16384;

// Rows and columns, or one number for both. What is no whole number becomes -1, which check_augmentation refuses.
Key pixels(std::string path, std::vector<int64_t> A::*member, double least, std::string help) {
  Key key;
  key.path = std::move(path);
  key.type = ValueType::numbers;
  key.help = std::move(help);
  key.range = between(least, kLargestImage);
  key.set = [member](Experiment& e, const Value& value) {
    std::vector<int64_t>& sizes = e.augmentation.*member;
    sizes.clear();
    for (const double size : std::get<std::vector<double>>(value)) {
      sizes.push_back(size == std::floor(size) ? static_cast<int64_t>(size) : -1);
    }
    if (sizes.size() == 1) sizes.push_back(sizes.front());
  };
  key.get = [member](const Experiment& e) -> Value {
    const std::vector<int64_t>& sizes = e.augmentation.*member;
    return std::vector<double>(sizes.begin(), sizes.end());
  };
  return optional(std::move(key));
}

template <class T>
auto of(T A::*member) {
  return in(&Experiment::augmentation, member);
}

Key scale() {
  Key key = numbers("augmentation.scale", of(&A::scale), above_up_to(0, 100),
                    "Images grow or shrink about their middle: the least and the most, as [0.9, 1.1].");
  key.count = 2;
  return optional(std::move(key));
}

}  // namespace

std::vector<Key> augmentation_keys() {
  return {
      pixels("augmentation.crop", &A::crop, 0,
             "Images are padded by so many pixels on each side, or by [rows, columns], and one of their size is cut "
             "out at a random place."),
      pixels("augmentation.translate", &A::translate, 0,
             "The same in other words: images move by up to so many pixels up or down and to either side."),
      number("augmentation.flip", of(&A::flip), between(0, 1),
             "The share of the images that is mirrored left to right."),
      number("augmentation.rotate", of(&A::rotate), between(0, 180),
             "Images are turned by up to so many degrees either way."),
      number("augmentation.translate_share", of(&A::translate_share), between(0, 1),
             "Images move by up to this share of their rows and columns, by parts of a pixel too."),
      scale(),
      number("augmentation.brightness", of(&A::brightness), between(0, 1),
             "Colours are multiplied with a number that is at most so far from 1."),
      number("augmentation.contrast", of(&A::contrast), between(0, 1),
             "The same for their distance from the image's mean grey."),
      number("augmentation.saturation", of(&A::saturation), between(0, 1),
             "The same for their distance from the pixel's grey."),
      pixels("augmentation.erase", &A::erase, 1,
             "A rectangle of so many pixels a side, or of [rows, columns], is blanked at a random place."),
      number("augmentation.erase_share", of(&A::erase_share), between(0, 1),
             "The share of the images that have one blanked."),
      number("augmentation.mixup", of(&A::mixup), between(0, 1000),
             "The alpha of mixup: each sample and its target are mixed with another's, in shares drawn from "
             "Beta(alpha, alpha) at each step; 0: not."),
  };
}

}  // namespace gpunn::config
