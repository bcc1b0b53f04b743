#pragma once

#include "data/digits/pen.hpp"
#include "data/registry.hpp"

namespace gpunn::data {

// The embedded set: digits that the program writes itself, light on dark, 28x28, so that every machine has something to
// train on. Samples u8 [rows, 1, 28, 28]. The seed decides every pixel.
DatasetRow digits_row();

// One image of `digit`; everything random comes from `random`.
DigitImage write_digit(int digit, PhiloxSource& random);

}  // namespace gpunn::data
