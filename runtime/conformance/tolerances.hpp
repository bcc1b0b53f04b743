#pragma once

#include <gpunn/precision.hpp>

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "conformance/oracle.hpp"

namespace gpunn::conformance {

// The op on other inputs of the same types.
using Evaluator = std::function<std::vector<OracleTensor>(const std::vector<OracleTensor>& inputs)>;

// A case whose result is to be judged.
struct Evaluation {
  const graph::OpSignature& signature;
  const std::vector<OracleTensor>& inputs;
  const std::vector<OracleTensor>& reference;  // the outputs in float64
  // Some bounds need the op on the absolute values of its inputs. Empty: the oracle, which takes its time.
  Evaluator evaluate = {};
  // What products of f32 may be rounded to, in the ops that multiply matrices or convolve.
  Precision precision = Precision::fp32;
};

struct Tolerance {
  std::vector<double> bound;  // by element: the largest |found - reference| that passes
  std::string_view reason;
};

// What a correct kernel may be off by in output `output`, from the one table of tolerances.cpp.
Tolerance tolerance_of(const Evaluation& evaluation, std::size_t output);

// Half the distance from 1 to the next number that a factor may be rounded to; of fp32 that of f32.
double product_roundoff(Precision precision);

// Half the distance from 1 to the next number of the type; 0 for integers.
double unit_roundoff(DType type);

}  // namespace gpunn::conformance
