#include "conformance/arithmetic.hpp"

#include <cfenv>
#include <limits>

namespace gpunn::conformance {

namespace {

// By what comes out, since the control registers differ from processor to processor. The compiler must not know.
bool flushes_subnormals() {
  volatile float smallest = std::numeric_limits<float>::min();
  volatile float half = smallest * 0.5F;  // a subnormal result
  volatile float again = half * 2.0F;     // of a subnormal operand
  return half == 0 || again != smallest;
}

}  // namespace

std::string mend_arithmetic() {
  std::string fault;
  if (flushes_subnormals()) {
    fault =
        "left the host's thread flushing subnormal numbers to zero (it was built with -ffast-math, or sets a mode "
        "and does not put it back)";
  } else if (std::fegetround() != FE_TONEAREST) {
    fault = "left the host's thread rounding in another way than to the nearest number";
  }
  if (!fault.empty()) std::fesetenv(FE_DFL_ENV);
  return fault;
}

}  // namespace gpunn::conformance
