#pragma once

#include <gpunn/data.hpp>

namespace gpunn::data {

// Refuses training rows that all have the same class, or the same list of labels: every model learns it to 100 %.
// Throws Error(usage) with the place of the labels. Arrays of a program may be a share of what a network learns: if
// they have more classes, a warning is added to the notes.
void require_several_classes(Dataset& set, const DataConfig& config);

}  // namespace gpunn::data
