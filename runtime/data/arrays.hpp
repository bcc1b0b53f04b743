#pragma once

#include <gpunn/data.hpp>

namespace gpunn::data {

// Throws Error(usage) where the parts of a data set in memory don't go together, or hold what can't be learnt: samples
// of other types or shapes, labels that are no class, NaN.
void require_arrays(const Dataset& set);

}  // namespace gpunn::data
