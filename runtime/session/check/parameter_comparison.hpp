#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "program/layout.hpp"

namespace gpunn::training {

// How far apart two backends' parameters are after one step from the same ones.
struct ParameterDifference {
  double largest = 0;  // of one element; infinite where only one of the two is a number
  std::size_t element = 0;
  double apart = 0;      // Euclidean distance
  double moved = 0;      // how far the step took the first's
  bool departs = false;  // more than rounding makes of a step
};

// All three are flat arrays of the same size; `half`: of a step whose values between layers are of half precision.
ParameterDifference compare_parameters(std::span<const float> before, std::span<const float> first,
                                       std::span<const float> second, bool half = false);

// "conv1.weight[0, 0, 2, 1]", of an element of the flat array.
std::string parameter_element(const ParameterLayout& layout, std::size_t element);

}  // namespace gpunn::training
