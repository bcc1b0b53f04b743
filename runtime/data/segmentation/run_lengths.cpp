#include "data/segmentation/run_lengths.hpp"

#include <gpunn/error.hpp>

#include <numeric>

namespace gpunn::data {

namespace {

// A number is written in digits of 5 bits, the lowest first, each plus 48 as a character; 32 is added to all but the
// last. The highest bit of the last digit is the sign. From the fourth number on, the number is the difference to the
// one two places before.
constexpr int kDigitBits = 5, kSign = 0x10, kMore = 0x20, kFirstCharacter = 48, kMostDigits = 7;

}  // namespace

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
