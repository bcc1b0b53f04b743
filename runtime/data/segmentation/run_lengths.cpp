#include "data/segmentation/run_lengths.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace gpunn::data {

namespace {

// A number is written in digits of 5 bits, the lowest first, each plus 48 as a character; 32 is added to all but the
// last. The highest bit of the last digit is the sign. From the fourth number on, the number is the difference to the
// one two places before.
constexpr int kDigitBits = 5, kSign = 0x10, kMore = 0x20, kFirstCharacter = 48, kMostDigits = 7;

// Polygons become masks by the rule of COCO's mask API: a pixel belongs to the mask if its column, followed from the
// top down to its centre, crosses the boundary an odd number of times. The boundary is drawn on a grid that is five
// times as fine as the pixels, from corner to corner rounded to it.
constexpr int64_t kFiner = 5, kMiddle = 2;
constexpr double kMostDistance = 1e5;
constexpr std::size_t kLeastCorners = 3;

struct GridPoint {
  int64_t x = 0, y = 0;
};

// Truncated towards 0 after half has been added, also below 0.
int64_t rounded(double value) { return static_cast<int64_t>(std::trunc(value + 0.5)); }

// The points of a side on the fine grid, from its first corner to its second: one for each step along its longer axis.
// They are computed from the end with the lower coordinate, so that both directions give the same points.
template <class Visit>
void draw_side(const GridPoint& from, const GridPoint& to, const Visit& visit) {
  const int64_t wide = std::abs(to.x - from.x), high = std::abs(to.y - from.y), steps = std::max(wide, high);
  const bool flat = wide >= high;
  const bool backwards = flat ? from.x > to.x : from.y > to.y;
  const GridPoint &low = backwards ? to : from, &end = backwards ? from : to;
  const double slope =
      steps == 0 ? 0 : static_cast<double>(flat ? end.y - low.y : end.x - low.x) / static_cast<double>(steps);
  for (int64_t i = 0; i <= steps; ++i) {
    const int64_t step = backwards ? steps - i : i;
    const double across = slope * static_cast<double>(step);
    visit(flat ? GridPoint{low.x + step, rounded(static_cast<double>(low.y) + across)}
               : GridPoint{rounded(static_cast<double>(low.x) + across), low.y + step});
  }
}

}  // namespace

RunLengths runs_of_polygon(std::span<const double> corners, int64_t height, int64_t width) {
  if (corners.size() < 2 * kLeastCorners || corners.size() % 2 != 0) {
    throw Error("a polygon of " + std::to_string(corners.size()) +
                " numbers; expected x and y of at least three corners");
  }
  std::vector<GridPoint> points;
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
  GridPoint before = points.front();
  bool is_first = true;
  const auto follow = [&](const GridPoint& point) {
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

RunLengths runs_of_text(std::string_view text, int64_t height, int64_t width) {
  RunLengths runs{.height = height, .width = width, .counts = {}};
  for (std::size_t at = 0; at < text.size();) {
    int64_t count = 0;
    for (int digit = 0;; ++digit) {
      const int value = at < text.size() ? text[at] - kFirstCharacter : -1;
      if (value < 0 || value >= 2 * kMore || digit == kMostDigits) {
        throw Error("the run lengths are not sound at character " + std::to_string(at));
      }
      ++at;
      count += static_cast<int64_t>(value & (kMore - 1)) << kDigitBits * digit;
      if ((value & kMore) != 0) continue;
      if ((value & kSign) != 0) count -= int64_t{1} << kDigitBits * (digit + 1);
      break;
    }
    if (runs.counts.size() > 2) count += runs.counts[runs.counts.size() - 2];
    if (count < 0 || count > height * width) {
      throw Error("a run of " + std::to_string(count) + " pixels in an image of " + std::to_string(height * width));
    }
    runs.counts.push_back(static_cast<uint32_t>(count));
  }
  require_whole(runs);
  return runs;
}

std::string text_of(const RunLengths& runs) {
  std::string text;
  for (std::size_t i = 0; i < runs.counts.size(); ++i) {
    int64_t rest = runs.counts[i];
    if (i > 2) rest -= runs.counts[i - 2];
    for (bool more = true; more;) {
      int digit = static_cast<int>(rest & (kMore - 1));
      rest >>= kDigitBits;
      more = rest != ((digit & kSign) != 0 ? -1 : 0);
      if (more) digit |= kMore;
      text += static_cast<char>(kFirstCharacter + digit);
    }
  }
  return text;
}

RunLengths runs_of(std::span<const uint8_t> ids, int64_t height, int64_t width, uint8_t id) {
  RunLengths runs{.height = height, .width = width, .counts = {0}};
  bool inside = false;
  for (int64_t x = 0; x < width; ++x) {
    for (int64_t y = 0; y < height; ++y) {
      if ((ids[static_cast<std::size_t>(y * width + x)] == id) != inside) {
        inside = !inside;
        runs.counts.push_back(0);
      }
      ++runs.counts.back();
    }
  }
  return runs;
}

void require_whole(const RunLengths& runs) {
  const int64_t sum = std::accumulate(runs.counts.begin(), runs.counts.end(), int64_t{0});
  if (sum != runs.height * runs.width) {
    throw Error("the run lengths are of " + std::to_string(sum) + " pixels, the image is " +
                std::to_string(runs.width) + " by " + std::to_string(runs.height));
  }
}

}  // namespace gpunn::data
