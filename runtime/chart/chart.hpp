#pragma once

#include <string>
#include <vector>

namespace gpunn::chart {

struct Point {
  double x = 0, y = 0;
};

// A line. Points that are not finite interrupt it.
struct Series {
  std::string name;
  std::vector<Point> points;  // by rising x
  bool scattered = false;     // points with no line between them, in any order
};

enum class Scale { linear, logarithmic };

// One pair of axes. Series of the same place in different panels have the same colour and one entry in the legend.
struct Panel {
  std::string x_label, y_label;
  Scale y_scale = Scale::linear;  // what is not above 0 is left out of a logarithmic one
  bool whole_x = false;           // ticks at whole numbers only
  std::vector<Series> series;
};

// Colours of the chart's own, light or dark as the reader's system is, or those of the page around it
// (chart/palette.hpp).
enum class Colours { own, of_page };

struct Chart {
  std::string title, subtitle;
  std::vector<Panel> panels;                    // side by side
  double panel_width = 500, plot_height = 320;  // pixels
  Colours colours = Colours::own;
};

// The chart as an SVG document. Lines are drawn one over the other from thick to thin, so that equal ones are all seen.
// Texts are escaped.
std::string svg(const Chart& chart);

// Logarithmic where values are so far apart that the small ones can't be told apart on a linear axis.
Scale fitting_scale(const std::vector<Series>& series);

}  // namespace gpunn::chart
