#pragma once

#include <gpunn/augmentation_config.hpp>

#include <cstdint>
#include <vector>

#include "data/images/image.hpp"
#include "data/synthetic/philox_source.hpp"

namespace gpunn::data {

// The augmentation of training images on the host, before their batch goes to the device: random-resized-crop, then
// RandAugment or TrivialAugment. All random choices follow from the seed, the epoch and the sample's row, so that
// batches are the same on any number of threads and ranks.
class SampleVariation {
 public:
  SampleVariation(const AugmentationConfig& config, uint64_t seed);
  // Whether the experiment asks for any of it.
  static bool is_wanted(const AugmentationConfig& config);

 private:
  friend class SampleDraw;
  std::vector<double> area_, ratio_;
  int64_t ops_ = 0, magnitude_ = 0;
  bool trivial_ = false;
  uint64_t seed_;
};

// The random choices for a sample in an epoch. If the augmentation crops, crop() comes before change().
class SampleDraw {
 public:
  SampleDraw(const SampleVariation& variation, uint64_t epoch, int64_t row);

  bool crops() const { return !variation_.area_.empty(); }
  ImageRegion crop(int64_t height, int64_t width);
  void change(Image& image);

 private:
  const SampleVariation& variation_;
  PhiloxSource random_;
};

// The part that torchvision's RandomResizedCrop takes (Szegedy et al., 2015): its share of the area is uniform between
// the two of `area`, the logarithm of width by height between those of `ratio`. After ten draws that do not fit, it is
// the largest middle part whose ratio is within.
ImageRegion random_resized_crop(int64_t height, int64_t width, const std::vector<double>& area,
                                const std::vector<double>& ratio, PhiloxSource& random);

// `ops` changes drawn with replacement, each of `magnitude` of 0 to 30 (Cubuk et al., 2020), as torchvision has them.
void rand_augment(Image& image, int64_t ops, int64_t magnitude, PhiloxSource& random);
// One change of a magnitude that is drawn, in the wide space (Müller and Hutter, 2021), as torchvision has it.
void trivial_augment(Image& image, PhiloxSource& random);

}  // namespace gpunn::data
