#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::data {

// A mask as COCO writes it: lengths of runs of pixels that are not and are in the mask, in turn, from the top left down
// each column.
struct RunLengths {
  int64_t height = 0, width = 0;
  std::vector<uint32_t> counts;
};

// The mask of a polygon, x and y of each corner in turn in pixels from the image's top left, as pycocotools'
// frPyObjects() rasterises it. Parts outside the image are cut off. Throws Error if there are fewer than three corners,
// or if one is further away than 100,000 pixels.
RunLengths runs_of_polygon(std::span<const double> corners, int64_t height, int64_t width);

// COCO's compressed form. Throws Error if the text is not one of a mask of this size.
RunLengths runs_of_text(std::string_view text, int64_t height, int64_t width);
std::string text_of(const RunLengths& runs);

// The pixels of a map, left to right and top to bottom, that have this id.
RunLengths runs_of(std::span<const uint8_t> ids, int64_t height, int64_t width, uint8_t id);

// Throws Error unless the runs fill the image.
void require_whole(const RunLengths& runs);

// Calls visit(pixel) for each pixel of the mask, numbered left to right and top to bottom.
template <class Visit>
void for_each_pixel(const RunLengths& runs, const Visit& visit) {
  int64_t at = 0;
  for (std::size_t i = 0; i < runs.counts.size(); ++i) {
    const int64_t end = at + runs.counts[i];
    if (i % 2 == 1) {
      for (int64_t p = at; p < end; ++p)
        visit(static_cast<std::size_t>(p % runs.height * runs.width + p / runs.height));
    }
    at = end;
  }
}

}  // namespace gpunn::data
