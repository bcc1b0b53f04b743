// Products of data and weights, for the files of several families.
#pragma once

#include <cstdint>
#include <vector>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

// Weights [units, features] times the last dimension of x; nullptr: no bias.
Value weighted(Call& call, const Value& x, const Constant& weights, const Constant* bias);

}  // namespace gpunn::interchange
