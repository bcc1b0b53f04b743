#pragma once

#include "data/images/planes.hpp"
#include "inference/enlarging/enlarger.hpp"

namespace gpunn::inference {

// A picture as a model of super-resolution enlarges it: the planes it sees, and those that bicubic has to do for.
struct PictureParts {
  data::Planes seen;
  data::Planes colours;  // the two colour differences of BT.601, of a model that sees luma alone; else none
  data::Planes opacity;  // a plane; none where all is opaque
  bool grey = false;
};

// `image` has 1 or 3 channels, `opacity` a plane or no values.
PictureParts parts_of(const data::Planes& image, data::Planes opacity, const PhotographInfo& settings);

// The enlarged picture, of the enlarged planes that were seen and the other parts' colours.
data::Planes joined(const data::Planes& seen, const PictureParts& parts, const Enlarger& enlarger);

}  // namespace gpunn::inference
