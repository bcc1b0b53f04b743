#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gpunn::cli {

struct LinePlot {
  std::vector<float> values;  // at equal distances along the x axis; finite
  double x_end = 0;           // of the axis, which starts at 0
  std::string x_label;
  bool logarithmic = false;  // starts at the lowest value; needs values above 0. Else it starts at 0
};

// Draws values as a line of at most `columns` by 14 characters: in Braille dots, or in asterisks if the terminal has
// none.
std::string drawing(const LinePlot& plot, std::size_t columns, bool utf8);

}  // namespace gpunn::cli
