// The section `augmentation` of an experiment.
#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <vector>

namespace gpunn {

// Changes to the images of a training batch, drawn anew for each image and step. The defaults change nothing.
struct AugmentationConfig {
  std::vector<int64_t> crop;       // [rows, columns] of padding, out of which an image is cut at random; empty: none
  std::vector<int64_t> translate;  // [rows, columns]: the largest shift; another way to write `crop`
  double flip = 0;                 // share of the images that are mirrored left to right
  double rotate = 0;               // largest angle in degrees, in both directions
  double translate_share = 0;      // largest shift as a share of the rows and columns; may be a part of a pixel
  std::vector<double> scale;       // [smallest, largest] factor of the size; empty: sizes stay
  std::vector<double> zoom;        // [smallest, largest] factor, at least 1; empty: none
  double brightness = 0, contrast = 0, saturation = 0;
  std::vector<int64_t> erase;  // [rows, columns] of a rectangle that is blanked; empty: none
  double erase_share = 1;      // share of the images that have a blanked rectangle
  double mixup = 0;            // alpha of the Beta distribution; 0: off
  double cutmix = 0;           // alpha of the Beta distribution; 0: off
  // The host does these before it copies a batch to the device.
  std::vector<double> resized_crop;                             // [smallest, largest] share of the area; empty: off
  std::vector<double> resized_crop_ratio = {3.0 / 4, 4.0 / 3};  // [smallest, largest] width by height
  int64_t rand_augment = 0;                                     // number of changes to an image; 0: off
  int64_t rand_augment_magnitude = 9;                           // strength of each change, 0 to 30
  bool trivial_augment = false;
  SourceLocation where;
};

}  // namespace gpunn
