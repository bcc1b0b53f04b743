#pragma once

#include <string>
#include <vector>

#include "chart/chart.hpp"

namespace gpunn::chart {

// The highest rates of a device: moving data, and computing.
struct RooflineCeiling {
  std::string name;
  double bytes_per_second = 0, flops_per_second = 0;
};

// The measured rates of one op.
struct RooflinePoint {
  std::string name;             // points of one name have one number in the plot
  std::string series;           // and those of one series one colour
  double flops = 0, bytes = 0;  // of a run
  double seconds = 0;           // that it took
};

// The roofline model (Williams, Waterman and Patterson, 2009): floating-point rate over arithmetic intensity, both axes
// logarithmic. Below the slanted line of a ceiling data move too slowly, below the level one numbers are computed too
// slowly; how far a point lies below is what could be gained.
struct Roofline {
  std::string title, subtitle;
  std::vector<RooflineCeiling> ceilings;
  std::vector<RooflinePoint> points;
};

// The chart as an SVG document, with a numbered list of the points' names below the plot. Texts are escaped.
std::string svg(const Roofline& roofline);

}  // namespace gpunn::chart
