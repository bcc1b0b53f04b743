#pragma once

#include <gpunn/data.hpp>

namespace gpunn::data {

// Refuses a classification whose training rows all have the same class: every model learns it to 100 %. Throws
// Error(usage) with the place of the labels. Arrays of a program may be a share of what a network learns: if they have
// more classes, a note is added.
void require_several_classes(Dataset& set, const DataConfig& config);

}  // namespace gpunn::data
