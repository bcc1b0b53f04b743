#pragma once

#include <gpunn/bench.hpp>

#include "chart/roofline.hpp"

namespace gpunn::bench {

// The rows that were measured, under the ceilings.
chart::Roofline roofline_of(const OpBenchReport& report);

}  // namespace gpunn::bench
