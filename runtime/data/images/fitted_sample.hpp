#pragma once

#include <gpunn/data.hpp>

#include <cstdint>
#include <vector>

#include "data/images/image.hpp"

namespace gpunn::data {

// The picture as a sample of a model: channel by channel, fitted as `fit` says; one of a single channel and a light
// background is inverted where `invert_light_background` is set.
std::vector<uint8_t> fitted_sample(Image image, int64_t channels, int64_t height, int64_t width,
                                   bool invert_light_background, const ImageFit& fit);

}  // namespace gpunn::data
