#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace gpunn::chart {

// The colours of a chart. Colour-blind people can tell the lines apart (after Okabe and Ito, 2008). Lines have a
// contrast of at least 3 : 1 on the ground, texts of at least 4.5 : 1.
struct Palette {
  std::string_view ground, grid, frame, ink, quiet;
  std::array<std::string_view, 8> lines;
  std::string_view line(std::size_t series) const { return lines[series % lines.size()]; }
};

inline constexpr Palette kOnLight = {
    .ground = "#ffffff",
    .grid = "#e1e5e9",
    .frame = "#6e7781",
    .ink = "#1b1f24",
    .quiet = "#57606a",
    .lines = {"#0072b2", "#d55e00", "#008f68", "#b0588f", "#8c6d1f", "#2f8fc4", "#000000", "#a65e00"}};
inline constexpr Palette kOnDark = {
    .ground = "#0f1317",
    .grid = "#2a323a",
    .frame = "#8b96a1",
    .ink = "#e6eaee",
    .quiet = "#a3adb8",
    .lines = {"#56b4e9", "#e69f00", "#2bc79a", "#e39ac4", "#d8c36a", "#8fd0f5", "#ffffff", "#f0b35a"}};

// Settings of the page around the chart: its CSS variables, and its background.
inline constexpr Palette kOfPage = {.ground = "none",
                                    .grid = "var(--grid)",
                                    .frame = "var(--frame)",
                                    .ink = "var(--ink)",
                                    .quiet = "var(--quiet)",
                                    .lines = {"var(--line-1)", "var(--line-2)", "var(--line-3)", "var(--line-4)",
                                              "var(--line-5)", "var(--line-6)", "var(--line-7)", "var(--line-8)"}};

// The CSS variables that kOfPage reads, as declarations for a page of this palette.
std::string css_variables(const Palette& palette);

// CSS that replaces the colours of kOnLight by those of kOnDark if the reader's system is dark.
std::string dark_style();

}  // namespace gpunn::chart
