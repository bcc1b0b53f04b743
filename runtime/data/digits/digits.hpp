#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/digits/pen.hpp"
#include "data/registry.hpp"

namespace gpunn::data {

// The embedded set: digits that the program writes itself, light on dark, 28x28, so that every machine has something to
// train on. Samples u8 [rows, 1, 28, 28]. The seed decides every pixel.
DatasetRow digits_row();

// One image of `digit`; everything random comes from `random`.
DigitImage write_digit(int digit, PhiloxSource& random);

inline constexpr int kDigits = 10;
inline constexpr uint64_t kBlocksOfDigit = 1024;  // a digit draws about a quarter of these

// The digit of a row. Any ten rows in line hold each once, so that a set cut short stays balanced.
int digit_of_row(uint64_t seed, uint64_t stream, int64_t row);

// "0" to "9".
std::vector<std::string> digit_names();

}  // namespace gpunn::data
