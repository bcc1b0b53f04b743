#pragma once

#include "conformance/suites.hpp"

namespace gpunn::conformance {

// The checks, and behind each that is about one op the same with every kernel of the backend that has a name and serves
// there: else only the plugin's own choice would ever be looked at. With CheckOptions.kernels, only those with a kernel
// of these names, of whichever plugin of the chain; throws Error(usage) where there are none.
Checks with_kernels(const Checks& checks, const CheckOptions& options);

}  // namespace gpunn::conformance
