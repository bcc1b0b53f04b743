#pragma once

#include <string>
#include <vector>

#include "ops/tolerance.hpp"

namespace gpunn::ops {

struct Comparison {
  double error = 0;  // the largest, in units of the tolerance; infinity where a NaN or an exact value differs
  std::size_t worst = 0, wrong = 0;  // the element with the largest error, and how many exceed the tolerance
  std::string detail;                // of a failure: index, expected, found, tolerance; empty: all is well
  bool ok() const { return detail.empty(); }
};

// NaN must meet NaN and infinity the same infinity. `what` names the tensor in the detail.
Comparison compare(const ReferenceTensor& reference, const ReferenceTensor& found, const Tolerance& tolerance,
                   const std::string& what);

// "[3, 17]" of element 81 of a tensor [5, 26].
std::string index_text(const Shape& shape, std::size_t element);

std::string number_text(double value);  // nine digits; "NaN" whatever its sign

}  // namespace gpunn::ops
