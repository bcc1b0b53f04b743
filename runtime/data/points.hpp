#pragma once

#include "data/registry.hpp"

namespace gpunn::data {

// Two classes of points in the square [-1, 1)^2 on either side of a random line, none nearer to it than a margin:
// what a perceptron must separate without an error. Samples f32 [rows, 2].
DatasetRow points_row();

}  // namespace gpunn::data
