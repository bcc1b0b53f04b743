#pragma once

#include "data/images/planes.hpp"

namespace gpunn::data {

// MATLAB's imresize(image, factor): bicubic (Keys, 1981, a = -0.5), antialiased where it shrinks, mirrored at the
// borders, and not rounded. Sides become ceil(side * factor).
Planes resize_bicubic(const Planes& image, double factor);
int64_t resized_side(int64_t side, double factor);

}  // namespace gpunn::data
