#pragma once

#include <gpunn/data.hpp>

#include <string>

namespace gpunn::data {

// A data set for messages: "'csv' (data/iris.csv: 120 training rows of f32[4], 30 test rows)".
std::string described(const Dataset& set);

}  // namespace gpunn::data
