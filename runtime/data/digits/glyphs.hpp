#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace gpunn::data {

struct Point {
  double x = 0, y = 0;
};

// A piece of a pen stroke: a cubic Bezier curve. A straight line is one with its handles on it.
struct Curve {
  Point from, handle1, handle2, to;
  bool straight = false;
};

// A way to write a digit: its strokes, in a box 100 wide and 100 high, y downwards.
struct Glyph {
  int digit = 0;
  std::vector<Curve> curves;
};

// Several glyphs a digit, those of digit d at [d].
const std::vector<std::vector<Glyph>>& glyphs();

// Parses an SVG path: "M x y" lifts the pen to a point, "L x y" draws a line, "C x y x y x y" a cubic curve. Throws
// Error for any other path.
std::vector<Curve> parse_path(std::string_view path);

}  // namespace gpunn::data
