#pragma once

#include <string>
#include <vector>

#include "chart/chart.hpp"

namespace gpunn::chart {

struct Tick {
  double value = 0;
  std::string label;
};

// The range that an axis shows and its ticks, all within the range.
struct Axis {
  Scale scale = Scale::linear;
  double low = 0, high = 1;
  std::vector<Tick> ticks;

  double share(double value) const;  // 0 at low, 1 at high
};

// An axis that holds the values from low to high and ends at a tick, with about `wanted` ticks at 1, 2 or 5 times a
// power of ten. Equal ends are moved apart. A logarithmic axis needs low above 0.
Axis make_axis(Scale scale, double low, double high, int wanted, bool whole = false);

}  // namespace gpunn::chart
