#pragma once

#include "data/registry.hpp"

namespace gpunn::data {

// Two digits side by side on a canvas of 28x56, at places that vary. The labels of an image are the digits in it, so
// one or two of ten. Samples u8 [rows, 1, 28, 56]. The seed decides every pixel.
DatasetRow two_digits_row();

}  // namespace gpunn::data
