#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "ops/error_scale.hpp"

namespace gpunn::ops {

struct Tolerance {
  std::vector<double> bound;  // by element: the largest |found - reference| that passes
  std::string_view reason;
  // An input is not finite, and the op may multiply it by zeros that it adds, or transform its neighbours. Outputs may
  // then be NaN or infinite anywhere, and must be where the reference is.
  bool spreads = false;
};

// The error that a correct kernel may have in output `output`, from the op's rows: |found - reference| <= unit roundoff
// of the output's type * scale. Integer types are compared exactly.
Tolerance tolerance_of(const Evaluation& evaluation, std::size_t output);

// Half the distance from 1 to the next number that a factor may be rounded to; of fp32 that of f32.
double product_roundoff(Precision precision);

}  // namespace gpunn::ops
