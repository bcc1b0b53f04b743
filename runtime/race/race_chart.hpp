#pragma once

#include <gpunn/race.hpp>

#include "chart/chart.hpp"

namespace gpunn::races {

// Training loss by step and accuracy on the evaluated part by epoch, a line a backend.
chart::Chart learning_curves(const RaceReport& report);

}  // namespace gpunn::races
