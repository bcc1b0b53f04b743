#pragma once

#include <gpunn/data.hpp>

namespace gpunn::data {

// Throws Error(usage) if the parts of a data set in memory contradict each other, or can't be learnt: samples of other
// types or shapes, invalid labels, NaN.
void require_arrays(const Dataset& set);

}  // namespace gpunn::data
