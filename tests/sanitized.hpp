// What tests leave out under a sanitizer.
#pragma once

namespace gpunn::testing {

// Code takes many times as long under a sanitizer, which looks at the lines that run and not at the numbers. Tests that
// would take minutes run each kind of case there, but not each size: release builds do that.
#ifdef GPUNN_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace gpunn::testing
