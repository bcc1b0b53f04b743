#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gpunn::cli {

struct LinePlot {
  std::vector<float> values;  // at equal distances along the x axis; finite
  double x_end = 0;           // of the axis, which starts at 0
  std::string x_label;
  bool logarithmic = false;  // from the lowest value; wants values above 0. Else from 0
};

// A line of values as text of at most `columns` by 14 characters: in Braille dots, or where those can't be shown in
// asterisks.
std::string drawing(const LinePlot& plot, std::size_t columns, bool utf8);

}  // namespace gpunn::cli
