// The changes that RandAugment and TrivialAugment draw from, with the values of Pillow's ImageEnhance, ImageOps and
// Image.transform.
#pragma once

#include <array>

#include "data/images/image.hpp"

namespace gpunn::data {

// A factor of 1 leaves the image as it is, 0 makes it black, grey, its mean grey, or smooth.
void change_brightness(Image& image, double factor);
void change_colour(Image& image, double factor);
void change_contrast(Image& image, double factor);
void change_sharpness(Image& image, double factor);
// Keeps this many bits of each value, 0 to 8.
void posterize(Image& image, int bits);
// Values from the threshold on are inverted.
void solarize(Image& image, double threshold);
// Each channel's least value becomes 0 and its largest 255.
void stretch_contrast(Image& image);
// Each channel has all values about equally often.
void equalize(Image& image);
// The pixel at (x, y) is the one of the image that lies at m * (x, y, 1), measured at middles of pixels; what lies
// outside is black.
void map_pixels(Image& image, const std::array<double, 6>& m);
void rotate(Image& image, double degrees);  // about its middle, against the clock

}  // namespace gpunn::data
