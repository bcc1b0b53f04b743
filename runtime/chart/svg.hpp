#pragma once

#include <string>
#include <string_view>

#include "chart/palette.hpp"

namespace gpunn::chart {

// Escapes text for an element's content or an attribute: XML's own characters, those that XML forbids, and bytes that
// are not UTF-8.
std::string escaped(std::string_view text);

// An SVG document that is written element by element. Lengths are in pixels, from the left and the top.
class SvgWriter {
 public:
  enum class Anchor { start, middle, end };
  struct TextStyle {
    double size = 12;
    Anchor anchor = Anchor::start;
    bool bold = false;
    std::string_view fill = kOnLight.ink;
    bool upwards = false;  // turned a quarter to the left
  };

  // `ground` is the colour of the background: that of kOnLight, whose colours turn dark if the reader's system is dark,
  // or "none" in a page that does so itself.
  SvgWriter(double width, double height, std::string_view title, std::string_view description,
            std::string_view ground = kOnLight.ground);
  void rectangle(double x, double y, double width, double height, std::string_view fill);
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width);
  void circle(double x, double y, double radius, std::string_view fill);
  void text(double x, double y, std::string_view text, const TextStyle& style);
  // `data` is a path's "M0 0L1 1".
  void path(std::string_view data, std::string_view stroke, double width);
  std::string finish();  // the document

 private:
  std::string out_;
};

}  // namespace gpunn::chart
