#pragma once

#include "data/images/image.hpp"

namespace gpunn::data {

// A picture with a strong style, for where no other is named: bent bands of few colours, 256 pixels a side.
Image drawn_style();

}  // namespace gpunn::data
