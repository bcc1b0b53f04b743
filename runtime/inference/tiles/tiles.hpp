#pragma once

#include <cstdint>
#include <vector>

namespace gpunn::inference {

// A stretch of a line that is computed at once, and the part of it that is kept: [keep_first, keep_end) of the line.
struct Stretch {
  int64_t first = 0, size = 0;
  int64_t keep_first = 0, keep_end = 0;
};

// Stretches of `tile`, or up to `step` - 1 more, that cover a line. What is kept of one is at least `overlap` away from
// its ends, but for the ends of the line. One alone where the line is no longer than a tile, or `tile` is 0. Each lies
// within the line, so that the line's ends are a stretch's ends and no other border shows. All are of one size and
// begin at multiples of `step`. `tile` has to be at least twice the overlap and a step.
std::vector<Stretch> stretches_of(int64_t length, int64_t tile, int64_t overlap, int64_t step = 1);

}  // namespace gpunn::inference
