#include "inference/tiles/tiles.hpp"

#include <algorithm>

namespace gpunn::inference {

std::vector<Stretch> stretches_of(int64_t length, int64_t tile, int64_t overlap, int64_t step) {
  if (tile == 0 || length <= tile) return {{0, length, 0, length}};
  tile += (length - tile) % step;  // so that the last one begins at a multiple too
  const int64_t pace = (tile - 2 * overlap) / step * step;
  std::vector<Stretch> stretches;
  int64_t kept = 0;
  for (int64_t first = 0;; first = std::min(first + pace, length - tile)) {
    const bool last = first + tile == length;
    const int64_t end = last ? length : first + tile - overlap;
    stretches.push_back({first, tile, kept, end});
    kept = end;
    if (last) return stretches;
  }
}

}  // namespace gpunn::inference
