// The section `augmentation` of an experiment.
#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <vector>

namespace gpunn {

// Changes to the images of a training batch, drawn anew for each image and step. Nothing is done where all is as it
// begins.
struct AugmentationConfig {
  std::vector<int64_t> crop;       // [rows, columns] of padding that an image is cut out of; empty: none
  std::vector<int64_t> translate;  // [rows, columns] that an image is moved by at most: the same, said otherwise
  double flip = 0;                 // the share that is mirrored left to right
  double rotate = 0;               // degrees at most, either way
  double translate_share = 0;      // of the rows and columns, by parts of a pixel
  std::vector<double> scale;       // [least, most] size; empty: as they are
  double brightness = 0, contrast = 0, saturation = 0;
  std::vector<int64_t> erase;  // [rows, columns] of a rectangle that is blanked; empty: none
  double erase_share = 1;      // of the images that have one blanked
  double mixup = 0;            // alpha of the Beta distribution; 0: none
  double cutmix = 0;           // likewise
  // On the host, before a batch goes to the device.
  std::vector<double> resized_crop;                             // [least, most] share of the area; empty: none
  std::vector<double> resized_crop_ratio = {3.0 / 4, 4.0 / 3};  // [least, most] width by height
  int64_t rand_augment = 0;                                     // changes an image; 0: none
  int64_t rand_augment_magnitude = 9;                           // of each, 0 to 30
  bool trivial_augment = false;
  SourceLocation where;
};

}  // namespace gpunn
