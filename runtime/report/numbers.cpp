#include <fmt/format.h>

#include "chart/svg.hpp"
#include "report/sections.hpp"

namespace gpunn::reports {

std::string percent(double share) {
  return metric_text(share, [](double value) { return fmt::format("{:.2f}\u00A0%", 100 * value); });
}

std::string figure(const Score& score) { return score.metric.is_share ? percent(score.value) : decimal(score.value); }

std::string decimal(double value) {
  return metric_text(value, [](double defined) { return fmt::format("{:.4f}", defined); });
}

std::string count(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<std::size_t>(at), "\u202F");
  }
  return digits;
}

std::string numbered_name(int64_t number, const std::string& name) {
  const std::string index = std::to_string(number);
  return name == index ? index : index + " " + name;
}

std::string image(const chart::Raster& raster, const std::string& alternative) {
  return fmt::format(R"(<img src="data:image/png;base64,{}" width="{}" height="{}" alt="{}">)",
                     chart::base64(chart::png(raster)), raster.width, raster.height, chart::escaped(alternative));
}

}  // namespace gpunn::reports
