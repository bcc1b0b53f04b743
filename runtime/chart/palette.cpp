#include "chart/palette.hpp"

#include <fmt/format.h>

namespace gpunn::chart {

std::string css_variables(const Palette& palette) {
  std::string css = fmt::format("--ground: {}; --grid: {}; --frame: {}; --ink: {}; --quiet: {};", palette.ground,
                                palette.grid, palette.frame, palette.ink, palette.quiet);
  for (std::size_t i = 0; i < palette.lines.size(); ++i) css += fmt::format(" --line-{}: {};", i + 1, palette.lines[i]);
  return css;
}

// By attribute, not by variables: a program that draws SVG without style sheets still finds the light colours.
std::string dark_style() {
  std::string rules;
  const auto turn = [&rules](std::string_view light, std::string_view dark) {
    rules += fmt::format("[fill='{0}']{{fill:{1}}}[stroke='{0}']{{stroke:{1}}}\n", light, dark);
  };
  turn(kOnLight.ground, kOnDark.ground);
  turn(kOnLight.grid, kOnDark.grid);
  turn(kOnLight.frame, kOnDark.frame);
  turn(kOnLight.ink, kOnDark.ink);
  turn(kOnLight.quiet, kOnDark.quiet);
  for (std::size_t i = 0; i < kOnLight.lines.size(); ++i) turn(kOnLight.lines[i], kOnDark.lines[i]);
  return "@media (prefers-color-scheme: dark) {\n" + rules + "}\n";
}

}  // namespace gpunn::chart
