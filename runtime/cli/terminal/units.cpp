#include "cli/terminal/units.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace gpunn::cli {

std::string bytes_text(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.4g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.4g} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  return clock_text(seconds);
}

std::string rate_text(double per_second) {
  if (!std::isfinite(per_second)) return "?";
  if (per_second < 999.5) return fmt::format("{:.0f}", per_second);
  if (per_second < 999'950) return fmt::format("{:.1f}k", per_second / 1e3);
  return fmt::format("{:.2f}M", per_second / 1e6);
}

std::string score_text(const Score& score) {
  return score.metric.is_share ? percent_text(score.value)
                               : metric_text(score.value, [](double value) { return fmt::format("{:.4g}", value); });
}

std::string percent_text(double share) {
  return metric_text(share, [](double value) { return fmt::format("{:.2f} %", 100 * value); });
}

std::string count_text(int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t place = digits.size(); place > first + 3; place -= 3) digits.insert(place - 3, 1, ' ');
  return digits;
}

}  // namespace gpunn::cli
