#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::conformance {

// A tensor of any type with its values widened to float64 (integers up to 2^53 are exact).
struct OracleTensor {
  TensorType type;
  std::vector<double> values;
};

// The op on the host, in float64, one plain loop nest each. In-place outputs come back as new tensors. Throws Error for
// an op that the oracle lacks.
std::vector<OracleTensor> run_oracle(const graph::OpSignature& signature, const std::vector<OracleTensor>& inputs);

}  // namespace gpunn::conformance
