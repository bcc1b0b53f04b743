// Polygons become masks by the rule of COCO's mask API: a pixel belongs to the mask if its column, followed from the
// top down to its centre, crosses the boundary an odd number of times. The boundary is drawn on a grid that is five
// times as fine as the pixels, from corner to corner rounded to it.
#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "data/segmentation/run_lengths.hpp"

namespace gpunn::data {

namespace {

constexpr int64_t kFiner = 5, kMiddle = 2;
constexpr double kMostDistance = 1e5;
constexpr std::size_t kLeastCorners = 3;

struct Point {
  int64_t x = 0, y = 0;
};

// Truncated towards 0 after half has been added, also below 0.
int64_t rounded(double value) { return static_cast<int64_t>(value + 0.5); }

// The points of a side on the fine grid, from its first corner to its second: one for each step along its longer axis.
// They are computed from the end with the lower coordinate, so that both directions give the same points.
template <class Visit>
void draw_side(const Point& from, const Point& to, const Visit& visit) {
  const int64_t wide = std::abs(to.x - from.x), high = std::abs(to.y - from.y), steps = std::max(wide, high);
  const bool flat = wide >= high;
  const bool backwards = flat ? from.x > to.x : from.y > to.y;
  const Point &low = backwards ? to : from, &end = backwards ? from : to;
  const double slope =
      steps == 0 ? 0 : static_cast<double>(flat ? end.y - low.y : end.x - low.x) / static_cast<double>(steps);
  for (int64_t i = 0; i <= steps; ++i) {
    const int64_t step = backwards ? steps - i : i;
    const double across = slope * static_cast<double>(step);
    visit(flat ? Point{low.x + step, rounded(static_cast<double>(low.y) + across)}
               : Point{rounded(static_cast<double>(low.x) + across), low.y + step});
  }
}

}  // namespace

RunLengths runs_of_polygon(std::span<const double> corners, int64_t height, int64_t width) {
  if (corners.size() < 2 * kLeastCorners || corners.size() % 2 != 0) {
    throw Error("a polygon of " + std::to_string(corners.size()) +
                " numbers; expected x and y of at least three corners");
  }
  std::vector<Point> points;
  for (std::size_t i = 0; i < corners.size(); i += 2) {
    if (!(std::abs(corners[i]) <= kMostDistance && std::abs(corners[i + 1]) <= kMostDistance)) {
      throw Error("a polygon with a corner at (" + std::to_string(corners[i]) + ", " + std::to_string(corners[i + 1]) +
                  "), too far from the image");
    }
    points.push_back(
        {rounded(static_cast<double>(kFiner) * corners[i]), rounded(static_cast<double>(kFiner) * corners[i + 1])});
  }

  // The boundary crosses the middle of a column of pixels between two points. A place is that of the first pixel below.
  std::vector<int64_t> crossings;
  Point before = points.front();
  bool is_first = true;
  const auto follow = [&](const Point& point) {
    const int64_t left = point.x < before.x ? point.x : point.x - 1, column = left / kFiner;
    if (!is_first && point.x != before.x && left >= 0 && left % kFiner == kMiddle && column < width) {
      const int64_t row = (std::min(point.y, before.y) - kMiddle + kFiner - 1) / kFiner;
      crossings.push_back(column * height + std::clamp<int64_t>(row, 0, height));
    }
    before = point;
    is_first = false;
  };
  for (std::size_t i = 0; i < points.size(); ++i) draw_side(points[i], points[(i + 1) % points.size()], follow);

  std::ranges::sort(crossings);
  RunLengths runs{.height = height, .width = width, .counts = {}};
  int64_t end = 0;
  for (std::size_t i = 0; i < crossings.size(); ++i) {
    if (i + 1 < crossings.size() && crossings[i] == crossings[i + 1]) {  // nothing lies between the two
      ++i;
      continue;
    }
    runs.counts.push_back(static_cast<uint32_t>(crossings[i] - end));
    end = crossings[i];
  }
  if (end < height * width) runs.counts.push_back(static_cast<uint32_t>(height * width - end));
  return runs;
}

}  // namespace gpunn::data
