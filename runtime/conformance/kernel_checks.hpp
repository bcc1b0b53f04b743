#pragma once

#include "conformance/suites.hpp"

namespace gpunn::conformance {

// The checks, and for each check of one op the same check with every named kernel of the backend that serves it:
// otherwise only the plugin's own choice would be checked. With CheckOptions.kernels, only checks with a kernel of
// these names, of any plugin of the chain; throws Error(usage) if there are none.
Checks with_kernels(const Checks& checks, const CheckOptions& options);

}  // namespace gpunn::conformance
