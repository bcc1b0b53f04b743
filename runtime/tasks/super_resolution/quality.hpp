#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/images/planes.hpp"

namespace gpunn::tasks {

// The plane that quality is measured on: the bytes of a single plane, the luma of three.
std::vector<uint8_t> measured_plane(const data::Planes& image);

// Two planes of bytes of the same size that are compared without a border of so many pixels on each side.
struct ComparedPlanes {
  std::span<const uint8_t> image, original;
  int64_t height = 0, width = 0, border = 0;
};

// The peak signal-to-noise ratio in dB. Infinite where the two are equal, NaN where nothing is left within the border.
double psnr(const ComparedPlanes& planes);

// The mean structural similarity (Wang et al., 2004): windows of 11x11 with Gaussian weights of 1.5 pixels that lie
// within. NaN where there is no such window.
double ssim(const ComparedPlanes& planes);

}  // namespace gpunn::tasks
