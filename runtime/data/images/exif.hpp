#pragma once

#include <string_view>

#include "data/images/image.hpp"

namespace gpunn::data {

// The orientation of a JPEG, 1 to 8 as in EXIF; 1 if it has none.
int exif_orientation(std::string_view bytes);
// The picture as that number says that it is to be shown.
Image turned_by_orientation(const Image& image, int orientation);
// The part of the stored picture, of this size, that is shown as `shown` once it is turned.
ImageRegion stored_region(const ImageRegion& shown, int orientation, int64_t stored_height, int64_t stored_width);
inline bool swaps_sides(int orientation) { return orientation >= 5; }

}  // namespace gpunn::data
