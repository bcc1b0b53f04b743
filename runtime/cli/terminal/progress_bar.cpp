#include "cli/terminal/progress_bar.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "cli/terminal/terminal.hpp"

namespace gpunn::cli {

namespace {

constexpr std::size_t kNarrowestBar = 8, kWidestBar = 30;

std::string bar_text(double share, std::size_t width, bool utf8) {
  if (!utf8) {
    const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
    return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
  }
  constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(share * static_cast<double>(8 * width)));
  std::string result = "▕";
  for (std::size_t i = 0; i < eighths / 8; ++i) result += "█";
  std::size_t used = eighths / 8;
  if (eighths % 8 != 0) {
    result += kEighths[eighths % 8];
    ++used;
  }
  return result + std::string(width - used, ' ') + "▏";
}

// Cut in front of a character, not within one.
std::string cut_to_width(const std::string& line, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t columns = 0; end < line.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(line[end]) & 0xC0U) != 0x80U;
    if (begins && columns++ == width) break;
  }
  return line.substr(0, end);
}

}  // namespace

std::string ProgressLine::text(std::size_t width, bool utf8) const {
  const std::string percent = share ? fmt::format(" {:3.0f}%", std::floor(100 * *share)) : "";
  const std::size_t narrowest = share ? kNarrowestBar + 2 : 0;
  std::size_t used = display_width(head) + percent.size();
  std::size_t shown = 0;
  for (; shown < parts.size(); ++shown) {
    const std::size_t columns = display_width(parts[shown]);
    if (used + columns + narrowest > width) break;
    used += columns;
  }
  std::string line = head;
  if (share && used + narrowest <= width) line += bar_text(*share, std::min(kWidestBar, width - used - 2), utf8);
  line += percent;
  std::vector<std::size_t> places = order;
  if (places.empty()) {
    places.resize(parts.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
  }
  for (const std::size_t i : places) {
    if (i < shown) line += parts[i];
  }
  return cut_to_width(line, width);
}

}  // namespace gpunn::cli
